/* Why: what holds the decision, as far as it reaches, and what is proved of it. */

import * as api from "../api.js";
import { h } from "../dom.js";
import { classWords, labelOf } from "../format.js";
import { t } from "../i18n.js";
import { icon } from "../icons.js";
import { fingerprint, question } from "../question.js";
import { say, state, update } from "../state.js";
import { certificateButtons } from "./certificate.js";
import { chip, note, rangeWords } from "./common.js";

const COUNT = 5;

/** Ask the service what holds the decision, once for each question. */
export async function open() {
  const key = fingerprint();
  if (state.why.key === key) return;
  update({ why: { key, found: null, error: "" } });
  const isMine = () => state.why.key === key;
  try {
    const { row, target, constraints, time_limit, certify } = question();
    const found = await api.reasons({ row, target, constraints, time_limit, certify, count: COUNT });
    if (!isMine()) return;
    update({ why: { key, found, error: "" } });
    say(t("why.count", { count: found.reasons.length }));
  } catch (error) {
    if (!(error instanceof api.Trouble)) throw error;
    if (isMine()) update({ why: { key, found: null, error: error.message } });
  }
}

/** What a feature of a reason may be, in words: without ends that are the feature's own. */
function held(name, ends) {
  const feature = state.model.features.find((each) => each.name === name);
  if (Array.isArray(ends)) return rangeWords(name, { levels: ends });
  const isLow = ends.low === (feature.levels?.[0] ?? feature.low);
  const isHigh = ends.high === (feature.levels?.at(-1) ?? feature.high);
  if (ends.low === ends.high || isLow === isHigh) return rangeWords(name, ends);
  return rangeWords(name, isLow ? { high: ends.high } : { low: ends.low });
}

function reasonCard(reason, place) {
  const { features, values, ranges, certificate } = reason;
  const line = (name) => h("li", {}, held(name, ranges?.[name] ?? { low: values[name], high: values[name] }));
  return h(
    "article.way",
    { "aria-labelledby": `why-${place}`, "data-key": `why-${place}`, "data-reason": place },
    h("header", {}, h("h3", { id: `why-${place}` }, features.length ? t("why.reason", { number: place + 1, names: features.map(labelOf).join(", ") }) : t("why.always")), chip("yes", "proof", t("why.proved"))),
    features.length > 0 && h("div.pad", {}, h("p", {}, t("why.long")), h("ul.listed", {}, features.map(line))),
    h("footer", {}, reason.note && h("p.small", {}, t("why.vacuous")), h("div.acts", {}, certificateButtons(`why-${place}`, certificate))),
  );
}

/** The tab. */
export function whyPart() {
  const { key, found, error } = state.why;
  if (error) return note("no", "info", error);
  if (key !== fingerprint()) return h("div.acts", {}, h("button.primary", { "data-why": "", on: { click: () => open() } }, t("why.ask")));
  if (!found) return h("p.loading", { role: "status" }, t("why.busy"));
  if (!found.reasons.length) return h("p.empty", {}, t(found.complete ? "ways.reached" : "why.none"));
  const { small } = classWords(state.target);
  return [
    h("p", { "data-key": "why-lead" }, t("why.lead", { small })),
    found.note && note("open", "info", t("why.broken")),
    found.reasons.map(reasonCard),
    found.necessary.length > 0 && h("p.small.exhausted", { "data-key": "why-necessary" }, icon("info"), t("why.necessary", { names: found.necessary.map(labelOf).join(", ") })),
    h("p.small.exhausted", { "data-key": "why-end" }, icon(found.complete ? "proof" : "info"), t(found.complete ? "why.complete" : "why.more")),
  ];
}
