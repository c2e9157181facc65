/* The nearest way: what is known, said as it is known. */

import { changed, find, openTab } from "../actions.js";
import { h } from "../dom.js";
import { classWords, goalWords, hasBounds, number, size } from "../format.js";
import { countWord, t } from "../i18n.js";
import { icon } from "../icons.js";
import { answer, blamed, isEdited, weights } from "../question.js";
import { state } from "../state.js";
import { boundsBar } from "./bounds.js";
import { certificateButtons } from "./certificate.js";
import { comparePart } from "./compare.js";
import { letterPart } from "./letter.js";
import { marginPart } from "./margin.js";
import { wayCard } from "./way.js";
import { whatifPart } from "./whatif.js";
import { whyPart } from "./why.js";

const LOOK = { optimal: ["yes", "proof"], feasible: ["open", "clock"], unknown: ["open", "clock"], infeasible: ["no", "stop"], reached: ["yes", "yes"], searching: ["accent", "clock"], stale: ["accent", "info"] };
const MINUTE = 60;
export const TABS = ["ways", "compare", "whatif", "letter", "why"];

/** Return what may be said now: the status of the answer, "searching" or "stale". */
export function standing() {
  if (state.asking?.isShown) return "searching";
  if (answer()) return answer().status;
  return state.asking || !state.answer ? "searching" : "stale";
}

function banner(status) {
  const [tone, sign] = LOOK[status];
  const { small, name } = classWords(state.target);
  const places = { goal: goalWords(), small, name };
  const title = status === "reached" && hasBounds() ? t("reached.title.score") : t(`${status}.title`, places);
  return h("div.banner", { class: tone, "data-key": "banner", "data-status": status }, icon(sign), h("h2", { id: "answer-title" }, title), h("p", {}, sentence(status, places)), action(status));
}

function sentence(status, places) {
  const found = answer();
  if (status === "optimal") return t(Object.keys(found.round_to ?? {}).length ? "optimal.text.round" : "optimal.text", places);
  if (status === "feasible") return feasible(found);
  if (status === "unknown") return t(found.lower > 0 ? "unknown.text" : "unknown.text.nothing", { ...places, lower: size(found.lower, weights()) });
  if (status === "infeasible") return infeasible(found, places);
  if (status === "stale") return t(isEdited() ? "stale.text.edited" : "stale.text");
  if (status === "reached") return t(hasBounds() ? "reached.text.score" : "reached.text");
  return t("searching.text");
}

function feasible({ lower, counterfactuals: [best] }) {
  if (lower <= 0) return t("feasible.text.nothing");
  const times = number(Math.ceil((best.distance / lower) * 10) / 10, 1);
  return t("feasible.text", { lower: size(lower, weights()), times });
}

function infeasible(found, places) {
  const count = found.conflict_rules.length;
  if (!count) return t("infeasible.text.none", places);
  const perhaps = /perhaps fewer/.test(found.reason) ? t("infeasible.perhaps") : "";
  const canLoosen = blamed(found).some((rule) => rule.loosen);
  return `${t("infeasible.text", { ...places, count, word: countWord(count), perhaps })} ${t(canLoosen ? "infeasible.relax" : "infeasible.policy", { count })}`;
}

function action(status) {
  if (status === "unknown" || status === "feasible") return h("p.act", {}, h("button", { "data-keep": "", on: { click: () => find({ seconds: Math.min(MINUTE, state.model.limits.time_limit) }) } }, t("keep")));
  if (status === "stale") return h("p.act", {}, h("button.primary", { on: { click: () => find() } }, t("ask.find")));
  return null;
}

/** The rules that are to blame, each with its button. */
function blame(found) {
  const one = (rule) => {
    const relax = () => {
      rule.loosen();
      changed();
    };
    return h("li", {}, h("div", {}, h("strong", {}, rule.words), h("code", {}, rule.text)), rule.loosen ? h("button.small", { "data-relax": rule.text, "aria-label": t("relax.label", { rule: rule.words }), on: { click: relax } }, t("relax")) : h("span.chip", {}, icon("locked"), t("policy")));
  };
  return h("ul.blamed", { "data-key": "blamed" }, blamed(found).map(one));
}

function bounds(status) {
  const found = answer();
  if (status === "searching") return boundsBar({ lower: state.asking?.lower ?? 0, upper: state.asking?.upper ?? null, weights: weights(), isBusy: true });
  if (!found || status === "reached") return null;
  return boundsBar({ lower: found.lower, upper: found.counterfactuals[0]?.distance ?? null, weights: weights(), isAll: status === "infeasible" });
}

/** Everything about the answer. */
export function answerPart() {
  const status = standing();
  const found = answer();
  const isOld = status === "searching" && !state.asking?.isShown;
  const head = h("div.card", { "data-key": "head" }, banner(status), status === "infeasible" && found && blame(found), bounds(status), status === "infeasible" && found?.certificate && h("div.pad.acts", {}, certificateButtons("all", found.certificate)));
  return [h("div.sticky", { "aria-busy": String(Boolean(state.asking)), class: isOld ? "waiting" : null }, head, h("div.card.tabbed", { "data-key": "tabs" }, tablist(), panel(found)))];
}

function tablist() {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const place = TABS.indexOf(state.tab);
    const next = step ? TABS[(place + step + TABS.length) % TABS.length] : { Home: TABS[0], End: TABS.at(-1) }[event.key];
    if (!next) return;
    event.preventDefault();
    openTab(next);
    document.querySelector(`#tab-${next}`).focus();
  };
  const one = (tab) => h("button", { role: "tab", id: `tab-${tab}`, "aria-selected": String(state.tab === tab), "aria-controls": "panel", tabindex: state.tab === tab ? "0" : "-1", on: { click: () => openTab(tab) } }, t(`tab.${tab}`));
  return h("div.tabs", { role: "tablist", "aria-label": t("tabs"), on: { keydown: move } }, TABS.map(one));
}

const PANELS = { ways, compare: comparePart, whatif: whatifPart, letter: letterPart, why: whyPart };

function panel(found) {
  return h("div.panel", { id: "panel", role: "tabpanel", "aria-labelledby": `tab-${state.tab}`, tabindex: "0", "data-key": state.tab }, PANELS[state.tab](found));
}

function ways(found) {
  if (!found) return h("p.empty", {}, t(state.asking ? "ways.soon" : "ways.stale"));
  if (!found.counterfactuals.length) return h("p.empty", {}, t(`ways.${found.status}`));
  const cards = found.counterfactuals.map((way, place) => wayCard(found, way, place));
  return [cards, found.exhausted && h("p.small.exhausted", {}, icon("proof"), t("exhausted")), marginPart()];
}
