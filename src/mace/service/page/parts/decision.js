/* Which decision: what the model says of the person, its score against the threshold, and what is wanted instead. */

import { changed, find } from "../actions.js";
import { h } from "../dom.js";
import { caseWord, classWords, modelName, points } from "../format.js";
import { t } from "../i18n.js";
import { icon } from "../icons.js";
import { isEdited } from "../question.js";
import { state, update } from "../state.js";
import { meter, note, segments } from "./common.js";

const STEPS = [0.1, 0.2, 0.3];

/** Return the scores that can be asked for: above the threshold, in round steps. */
function scores() {
  const line = state.person.threshold ?? 0.5;
  return STEPS.map((step) => Math.round((line + step) * 20) / 20).filter((score) => score < 1);
}

function ask(patch) {
  update(patch);
  changed();
}

function wanted() {
  const { model, target, atLeast } = state;
  const isProbability = /^P\(/.test(state.person.score_of ?? "");
  const options = model.classes.map((label) => h("option", { value: String(label) }, classWords(label).name));
  const choose = (event) => ask({ target: model.classes.find((label) => String(label) === event.target.value), atLeast: null });
  return h(
    "div.ask",
    { role: "group", "aria-label": t("ask.title") },
    h("div.askrow", {}, h("div", {}, h("label.label", { for: "target" }, t("ask.decision")), h("select.field", { id: "target", value: String(target), on: { change: choose } }, options)), isProbability && h("div", {}, h("span.label", {}, t("ask.score")), segments("score", t("ask.score"), [[null, t("ask.enough")], ...scores().map((score) => [score, points(score)])], atLeast, (score) => ask({ atLeast: score })))),
    h("button.primary", { "data-find": "", on: { click: () => find() } }, t("ask.find")),
  );
}

/** The card across the top of a case. */
export function decisionPart() {
  const { person, now } = state;
  if (person.error) return h("section.card.pad", {}, h("h1", {}, `${caseWord()} ${person.id}`), note("no", "info", person.error));
  const words = classWords(now.decision);
  return h(
    "section.card.decision",
    { "aria-labelledby": "decision-title", "data-key": "decision" },
    h("div", {}, h("p.small", {}, `${caseWord()} ${person.id}`), h("h1", { id: "decision-title", class: words.tone }, icon(words.tone), words.name), h("p.small", {}, isEdited() ? t("decision.edited") : t("decision.by", { model: modelName() }))),
    h("div", {}, h("p.label", {}, t("score")), meter(now.score, now.threshold, { wanted: state.atLeast })),
    wanted(),
  );
}
