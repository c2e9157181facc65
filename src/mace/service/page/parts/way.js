/* A way: what changes, before and after; what stays, collapsed; what follows. */

import { openTab } from "../actions.js";
import { h } from "../dom.js";
import { differenceOf, labelOf, points, size, sizeWords, valueOf } from "../format.js";
import { capital, countWord, t } from "../i18n.js";
import { weights } from "../question.js";
import { state } from "../state.js";
import { certificateButtons } from "./certificate.js";
import { beforeAfter, chip } from "./common.js";

/** Return what a way is called. */
export function wayTitle(found, place) {
  if (place) return t("way.other", { number: place + 1 });
  return t(found.counterfactuals[0].status === "optimal" ? "way.nearest" : "way.best");
}

function mark(way, place) {
  const isProved = way.status === "optimal";
  if (!place) return isProved ? chip("yes", "proof", t("optimal.title")) : chip("open", "clock", t("way.unproved"));
  return isProved ? chip("", "proof", t("way.later")) : chip("open", "clock", t("way.unproved"));
}

function change({ feature, before, after }) {
  const difference = differenceOf(feature, before, after);
  return h("div.change", {}, h("dt", {}, labelOf(feature)), h("dd", {}, beforeAfter(feature, before, after), difference && h("span.small.num", {}, difference)));
}

function stays({ changes }) {
  const changed = new Set(changes.map((each) => each.feature));
  const rest = state.model.features.filter(({ name }) => !changed.has(name));
  return h("details", {}, h("summary", {}, t("stays", { count: rest.length })), h("ul.same", {}, rest.map(({ name }) => h("li", {}, `${labelOf(name)}: `, h("strong", {}, valueOf(name, state.values[name]))))));
}

/** A card of one way. */
export function wayCard(found, way, place) {
  const count = way.changes.length;
  const weighted = weights();
  const summary = t("way.summary", { count, word: capital(countWord(count)), words: sizeWords(way.distance, weighted) });
  const isProbability = typeof way.score === "number" && way.score >= 0 && way.score <= 1;
  return h(
    "article.way",
    { "aria-labelledby": `way-${place}`, "data-key": `way-${place}`, class: !place && way.status === "optimal" ? "first" : null },
    h("header", {}, h("h3", { id: `way-${place}` }, wayTitle(found, place)), mark(way, place)),
    h("dl", {}, way.changes.map(change)),
    h(
      "footer",
      {},
      h("p", {}, `${summary} `, h("span.small.num", {}, `(${size(way.distance, weighted)})`), isProbability && [`. ${t("way.score")} `, h("strong.num", {}, points(way.score))], "."),
      stays(way),
      h("div.acts", {}, certificateButtons(place, way.certificate), h("button.small", { "data-try": place, on: { click: () => openTab("whatif", place) } }, t("way.try")), h("button.small", { "data-letter": place, on: { click: () => openTab("letter", place) } }, t("way.letter"))),
    ),
  );
}
