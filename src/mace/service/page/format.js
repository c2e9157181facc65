/* Values, numbers and names as people read them. */

import { capital, language, t } from "./i18n.js";
import { state } from "./state.js";

const numbers = new Intl.NumberFormat(language === "en" ? "en-GB" : language, { maximumFractionDigits: 6 });
const dates = new Intl.DateTimeFormat(language === "en" ? "en-GB" : language, { dateStyle: "long", timeZone: "UTC" });

/** Return what the names file says in the page's language. */
function named(kind) {
  const names = state.model?.names ?? {};
  return (names[language] ?? names.en ?? names)[kind] ?? {};
}

/** Return what the space says that people call something: outcomes, or the levels of a feature. */
const wording = (kind) => state.model?.space?.wording?.[kind] ?? {};

/** Return the feature of the model with that name. */
export function featureOf(name) {
  return state.model.features.find((feature) => feature.name === name);
}

/** Return the name of a feature for people, with the places where a long word may break. */
export function softLabelOf(name) {
  return named("features")[name]?.label ?? featureOf(name)?.title ?? capital(name.replaceAll("_", " "));
}

/** Return the name of a feature for people. */
export const labelOf = (name) => softLabelOf(name).replaceAll("\u00ad", "");

/** Return which group of features one belongs to: its key, for people its title. */
export function groupOf(name) {
  return named("features")[name]?.group ?? "";
}

/** Return the keys of all groups, in the order of the names file. */
export const groupOrder = () => Object.keys(named("groups"));

export function groupTitle(key) {
  return named("groups")[key] ?? (key ? capital(key) : t("person.all"));
}

/** Whether the model predicts numbers. */
export const isNumeric = () => state.model.classes === null;

/** Whether a score, or a number, is wanted rather than a decision alone. */
export const hasBounds = () => state.atLeast !== null || state.atMost !== null;

/** Return the bounds that are wanted, in words. */
export function boundsWords() {
  const { atLeast, atMost } = state;
  const shown = (value) => (isNumeric() ? number(value) : points(value));
  if (atMost === null) return t("bound.least", { low: shown(atLeast) });
  if (atLeast === null) return t("bound.most", { high: shown(atMost) });
  return t("range.chip", { low: shown(atLeast), high: shown(atMost) });
}

/** Return the words of a number that was predicted. */
function numberWords(value) {
  const isGoal = (state.atLeast === null || value >= state.atLeast) && (state.atMost === null || value <= state.atMost);
  const name = number(Number(value.toPrecision(6)));
  return { name, small: name, goal: goalWords(), tone: isGoal ? "yes" : "no" };
}

/** Return the words of a class: its name, the name within a sentence, "to ..." and whether it is welcome. */
export function classWords(label) {
  if (typeof label === "number" && isNumeric()) return numberWords(label);
  if (label === null) return { name: t("class.any"), small: t("class.any"), goal: t("class.goal", { label: t("class.any") }), tone: "no" };
  const given = named("classes")[label] ?? {};
  const known = wording("outcomes")[String(label)];
  const quoted = t("class.quoted", { label: known ?? String(label) });
  const isGoal = String(label) === String(state.model?.wish.target);
  return {
    name: given.name ?? capital(known ?? String(label)),
    small: given.small ?? known ?? quoted,
    goal: given.goal ?? t("class.goal", { label: quoted }),
    tone: given.tone ?? (isGoal ? "yes" : "no"),
  };
}

/** Return what the goal is called: "to approval", or the score that was asked for. */
export function goalWords() {
  if (hasBounds()) return t(isNumeric() ? "goal.number" : "goal.score", { score: boundsWords() });
  return classWords(state.target).goal;
}

/** Return what the model, and a person's case, are called. */
export const modelName = () => wordOr("model", state.model.name);
export const caseWord = () => wordOr("case", t("case"));
const wordOr = (kind, otherwise) => (typeof named(kind) === "string" ? named(kind) : otherwise);

/** Return the name of a rule for people, or its text. */
export function ruleName(text) {
  const most = /^at most (\d+) features? changes?$/.exec(text);
  return named("rules")[text] ?? (most ? t("rule.most", { count: Number(most[1]) }) : text);
}

/** Return a number of the page's language. */
export function number(value, digits = null) {
  if (digits === null) return numbers.format(value);
  return value.toLocaleString(language === "en" ? "en-GB" : language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Return a value of a feature for people, with its unit. */
export function valueOf(name, value) {
  if (value === null || value === undefined) return t("missing");
  const feature = featureOf(name);
  if (feature?.levels) return named("levels")[name]?.[value] ?? capital(wording("levels")[name]?.[value] ?? String(value));
  if (feature?.kind === "date") return dateOf(value);
  return withUnit(name, number(value));
}

/** Return a day, written as in 2026-02-28, for people. */
export const dateOf = (text) => dates.format(new Date(text));

export function withUnit(name, text) {
  const { before = "", unit = featureOf(name)?.unit ?? "" } = named("features")[name] ?? {};
  return [before, text, unit].filter(Boolean).join("\u00a0");
}

/** Return the unit of a number. */
export function unitOf(name) {
  const { before, unit } = named("features")[name] ?? {};
  return unit ?? before ?? featureOf(name).unit ?? "";
}

/** Return how a change moves a feature: "26 months less", "2 steps up"; empty for categories. */
export function differenceOf(name, before, after) {
  const feature = featureOf(name);
  if (before === null || after === null) return "";
  if (feature.kind === "ordinal") {
    const count = feature.levels.indexOf(after) - feature.levels.indexOf(before);
    return t(count > 0 ? "steps.up" : "steps.down", { count: Math.abs(count) });
  }
  if (feature.levels) return "";
  if (feature.kind === "date") {
    const days = Math.round((Date.parse(after) - Date.parse(before)) / 86_400_000);
    return t(days > 0 ? "days.later" : "days.earlier", { count: Math.abs(days) });
  }
  const amount = withUnit(name, number(Number(Math.abs(after - before).toPrecision(12))));
  return t(after > before ? "more" : "less", { amount });
}

/** Return a probability as points of 100. */
export function points(score) {
  return number(Math.round(score * 1000) / 10, Math.abs(score * 100 - Math.round(score * 100)) < 0.05 ? 0 : 1);
}

/** Return a share in percent. */
export function percent(share) {
  return t("percent", { number: number(Math.round(share * 100)) });
}

/** Return the sum of the weights: distances are divided by it, sizes are not, so that one dial does not rescale all numbers. */
export function sumOfWeights(weights = {}) {
  return state.model.features.reduce((sum, feature) => sum + (weights[feature.name] ?? 1), 0);
}

/** Return the size of a change; 1.00 is one answer changed completely. */
export function size(distance, weights) {
  const whole = distance * sumOfWeights(weights);
  return number(whole, whole > 0 && whole < 0.01 ? 4 : 2);
}

/** Return the size of a change in words. */
export function sizeWords(distance, weights) {
  const whole = distance * sumOfWeights(weights);
  const step = [0.05, 0.35, 0.8, 1.6].filter((end) => whole >= end).length;
  return t("size.words").split("|")[step];
}

/** Return a number of bytes. */
export function bytes(count) {
  return count < 1e6 ? `${number(count / 1000, 1)} kB` : `${number(count / 1e6, 1)} MB`;
}
