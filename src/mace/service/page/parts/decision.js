/* Which decision: what the model says of the person, its score against the threshold, and what is wanted instead. */

import { changed, find } from "../actions.js";
import { h } from "../dom.js";
import { caseWord, classWords, isNumeric, modelName, points } from "../format.js";
import { t } from "../i18n.js";
import { icon } from "../icons.js";
import { isEdited } from "../question.js";
import { state, update } from "../state.js";
import { meter, note, segments } from "./common.js";

const STEPS = [0.1, 0.2, 0.3];

/** Return the scores that can be asked for: above the threshold, in round steps. */
function scores() {
  const line = state.person.threshold ?? 0.5;
  const steps = STEPS.map((step) => Math.round((line + step) * 20) / 20).filter((score) => score < 1);
  const own = state.model.wish.atLeast;
  return own === null || steps.includes(own) ? steps : [...steps, own].sort();
}

/** The numbers that are wanted of a model that predicts numbers. */
function numbers() {
  const set = (end, text) => {
    const value = text === "" ? null : Number(text);
    const other = end === "atLeast" ? state.atMost : state.atLeast;
    if (Number.isFinite(value ?? 0) && (value !== null || other !== null)) ask({ [end]: value });
    else update();
  };
  const one = (end, text) => h("div", {}, h("label.label", { for: end }, text), h("input.field.num", { id: end, type: "number", step: "any", value: state[end] === null ? "" : String(state[end]), "data-draft": "", on: { change: (event) => set(end, event.target.value) } }));
  return h("div.askrow.two", {}, one("atLeast", t("ask.least")), one("atMost", t("ask.most")));
}

function ask(patch) {
  update(patch);
  changed();
}

function wanted() {
  const { model, target, atLeast } = state;
  const isProbability = target !== null && (/^P\(/.test(state.person.score_of ?? "") || state.model.wish.atLeast !== null);
  const button = h("button.primary", { "data-find": "", on: { click: () => find() } }, t("ask.find"));
  if (isNumeric()) return h("div.ask", { role: "group", "aria-label": t("ask.title") }, numbers(), button);
  const labels = model.wish.target === null ? [null, ...model.classes] : model.classes;
  const options = labels.map((label) => h("option", { value: String(label) }, classWords(label).name));
  const choose = (event) => ask({ target: labels.find((label) => String(label) === event.target.value), atLeast: null, atMost: null });
  return h(
    "div.ask",
    { role: "group", "aria-label": t("ask.title") },
    h("div.askrow", {}, h("div", {}, h("label.label", { for: "target" }, t("ask.decision")), h("select.field", { id: "target", value: String(target), on: { change: choose } }, options)), isProbability && h("div", {}, h("span.label", {}, t("ask.score")), segments("score", t("ask.score"), [[null, t("ask.enough")], ...scores().map((score) => [score, points(score)])], atLeast, (score) => ask({ atLeast: score, atMost: null })))),
    button,
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
    h("div", {}, !isNumeric() && h("p.label", {}, t("score")), meter(now.score, now.threshold, { wanted: state.atLeast })),
    wanted(),
  );
}
