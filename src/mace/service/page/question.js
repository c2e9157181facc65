/* From what may change to a question of the service, and back from its rules to words and buttons. */

import { featureOf, hasBounds, isNumeric, labelOf, ruleName, valueOf } from "./format.js";
import { t } from "./i18n.js";
import { state } from "./state.js";

export const EFFORTS = { easy: 0.25, normal: 1, hard: 4 };
const COUNT = 3;

const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : `\`${name}\``);
const literal = (value) => (typeof value !== "string" ? String(value) : value.includes("'") ? `"${value}"` : `'${value}'`);

/**
 * Return the rules of a person who was just opened: those of the service, which nobody can switch off, and those that the
 * names file switches on at first.
 */
export function startingRules() {
  const rules = { locks: new Set(), required: new Set(), directions: {}, ranges: {}, barred: {}, efforts: {}, others: [] };
  for (const { name, locked, protected: isProtected } of state.model.features) {
    if (locked) rules.required.add(name);
    else if (isProtected) rules.locks.add(name);
  }
  for (const { text } of state.model.rules.filter((rule) => !readSimple(rule.text))) rules.others.push({ text, required: true, on: true });
  for (const text of state.model.names?.start ?? []) {
    const simple = readSimple(text);
    if (!simple) rules.others.push({ text, required: false, on: true });
    else for (const name of simple.names) if (simple.verb === "stays") rules.locks.add(name); else rules.directions[name] = simple.verb;
  }
  return rules;
}

/** Return the one direction that a rule of the service leaves to a feature, or nothing. */
export const policyDirection = (name) => ({ up: "increases", down: "decreases" })[featureOf(name).direction] ?? null;

/** Return in which direction some features may move: up or down, and of dates later or earlier. */
export const directionWords = (verb, names) => (areDates(names) ? t(`only.date.${verb}`) : t(`only.${verb}`));
const directionRule = (verb, names, given) => (areDates(names) ? t(`rule.date.${verb}`, given) : t(`rule.${verb}`, given));
const areDates = (names) => names.every((name) => featureOf(name).kind === "date");

/** Read "a, b stay" and "a increases", which have buttons of their own beside the feature. */
function readSimple(text) {
  const found = /^(.+?) (stays?|increases?|decreases?)$/.exec(text);
  if (!found) return null;
  const names = found[1].split(",").map((name) => name.trim().replaceAll("`", ""));
  const known = new Set(state.model.features.map((feature) => feature.name));
  return names.every((name) => known.has(name)) ? { names, verb: found[2].replace(/s?$/, "s") } : null;
}

export const isLocked = (name) => state.rules.locks.has(name) || state.rules.required.has(name);
export const isRequired = (name) => state.rules.required.has(name);
export const mayChange = () => state.model.features.filter((feature) => !isLocked(feature.name)).length;

/** Return every rule in force that the page sends: its text, its words, and how to loosen it. */
export function rulesInForce() {
  const { locks, required, directions, ranges, barred, others } = state.rules;
  const made = [];
  for (const feature of state.model.features) {
    const { name } = feature;
    const [code, label] = [quoted(name), labelOf(name)];
    if (locks.has(name) && !required.has(name)) made.push({ text: `${code} stays`, words: t("rule.stays", { label, count: 1 }), loosen: () => locks.delete(name) });
    if (isLocked(name)) continue;
    if (directions[name]) made.push({ text: `${code} ${directions[name]}`, words: directionRule(directions[name], [name], { label }), loosen: () => delete directions[name] });
    if (ranges[name]) made.push({ ...rangeRule(feature, code, label), loosen: () => delete ranges[name] });
    if (barred[name]?.size) made.push({ ...levelsRule(feature, code, label), loosen: () => delete barred[name] });
  }
  for (const rule of others.filter((each) => each.on && !each.required)) made.push({ text: rule.text, words: ruleName(rule.text), loosen: () => (rule.on = false) });
  return made;
}

function rangeRule(feature, code, label) {
  const [low, high] = state.rules.ranges[feature.name];
  const ends = [low, high].map((end) => (feature.kind === "date" ? end : literal(end)));
  return { text: `${code} within [${ends.join(", ")}]`, words: t("rule.within", { label, low: valueOf(feature.name, low), high: valueOf(feature.name, high) }) };
}

function levelsRule(feature, code, label) {
  const left = feature.levels.filter((level) => !state.rules.barred[feature.name].has(level));
  const listed = left.map((level) => valueOf(feature.name, level)).join(", ");
  const named = left.filter((level) => level !== null).map((level) => literal(level));
  const known = named.length ? [`${code} in [${named.join(", ")}]`] : [];
  const gap = left.includes(null) ? [`${code} is missing`] : [];
  return { text: [...known, ...gap].join(" or "), words: t("rule.levels", { label, levels: listed }) };
}

/** Return the weights that are not 1. */
export function weights() {
  return Object.fromEntries(Object.entries(state.rules.efforts).filter(([name, weight]) => weight !== 1 && !isLocked(name)));
}

/** Return what is wanted as the service takes it: a label, or bounds on its score or on the prediction. */
export function target() {
  if (!hasBounds()) return state.target;
  const bounds = { at_least: state.atLeast, at_most: state.atMost };
  const given = Object.entries(bounds).filter(([, value]) => value !== null);
  return { ...(isNumeric() ? {} : { label: state.target }), ...Object.fromEntries(given) };
}
export const constraints = () => rulesInForce().map((rule) => rule.text);

/** Return the question as the service wants it. */
export function question() {
  const asked = { row: state.values, target: target(), constraints: constraints(), count: COUNT, certify: true, time_limit: state.seconds };
  const weighted = weights();
  return Object.keys(weighted).length ? { ...asked, weights: weighted } : asked;
}

/** Return what tells two questions apart, whatever time they may take. */
export function fingerprint() {
  const { time_limit: _, ...rest } = question();
  return JSON.stringify(rest);
}

/** Return the answer in hand, if it answers the question that the page shows now. */
export const answer = () => (state.answer && state.asked === fingerprint() ? state.answer : null);
export const isEdited = () => state.model.features.some(({ name }) => state.values[name] !== state.person.row[name]);

/** Return the rules that a proof of "impossible" blames: words, text, and how to loosen each; those of the service cannot be loosened. */
export function blamed(explanation) {
  const sent = rulesInForce();
  return explanation.conflict_rules.map(({ text, from, number }) => {
    if (from === "request" && sent[number]) return sent[number];
    return { text, words: ruleWords(text), loosen: null };
  });
}

/** Return a rule of the service in words, where it is a simple one. */
export function ruleWords(text) {
  const simple = readSimple(text);
  if (!simple) return ruleName(text);
  const given = { label: simple.names.map(labelOf).join(", "), count: simple.names.length };
  return simple.verb === "stays" ? t("rule.stays", given) : directionRule(simple.verb, simple.names, given);
}

/** Return the rules of single features that a row breaks, in words; `broken` are the texts that the service found, where it looked. */
export function brokenBy(row, broken = null) {
  const sent = rulesInForce();
  if (broken) return broken.map((text) => sent.find((rule) => rule.text === text)?.words ?? ruleName(text));
  return state.model.features.filter((feature) => breaks(feature, row[feature.name])).map((feature) => labelOf(feature.name));
}

/** Return the ends of a proved region without what a rule of its feature forbids; nothing where none of it is left. */
export function allowedEnds(name, ends) {
  const feature = featureOf(name);
  if (feature.levels) {
    const [first, last] = [ends.low ?? feature.levels[0], ends.high ?? feature.levels.at(-1)].map((level) => feature.levels.indexOf(level));
    const inside = ends.levels ?? feature.levels.slice(first, last + 1);
    const left = inside.filter((level) => !breaks(feature, level));
    if (!left.length) return null;
    return left.length === inside.length ? ends : { levels: left };
  }
  if (isLocked(name)) return { low: state.values[name], high: state.values[name] };
  const place = placeOf(feature);
  const direction = policyDirection(name) ?? state.rules.directions[name];
  const [low, high] = state.rules.ranges[name] ?? [feature.low, feature.high];
  const now = state.values[name];
  const least = [ends.low ?? feature.low, low, ...(direction === "increases" && now !== null ? [now] : [])].reduce((one, other) => (place(one) < place(other) ? other : one));
  const most = [ends.high ?? feature.high, high, ...(direction === "decreases" && now !== null ? [now] : [])].reduce((one, other) => (place(one) > place(other) ? other : one));
  return place(least) > place(most) ? null : { low: least, high: most };
}

const placeOf = ({ kind, levels }) => (value) => (kind === "date" ? Date.parse(value) : levels ? levels.indexOf(value) : value);

function breaks(feature, after) {
  const { name } = feature;
  const before = state.values[name];
  if (isLocked(name)) return after !== before;
  if (after === null || before === null) return false;
  const place = placeOf(feature);
  const direction = policyDirection(name) ?? state.rules.directions[name];
  if (direction === "increases" && place(after) < place(before)) return true;
  if (direction === "decreases" && place(after) > place(before)) return true;
  const range = state.rules.ranges[name];
  return Boolean((range && (place(after) < place(range[0]) || place(after) > place(range[1]))) || state.rules.barred[name]?.has(after));
}

/** Return how far two values of a feature are apart, between 0 and 1. */
function apart(feature, one, other) {
  if (one === other) return 0;
  if (one === null || other === null || feature.kind === "categorical") return 1;
  if (feature.kind === "ordinal") return Math.abs(feature.levels.indexOf(one) - feature.levels.indexOf(other)) / (feature.levels.length - 1);
  const place = placeOf(feature);
  return Math.abs(place(one) - place(other)) / (place(feature.high) - place(feature.low));
}

/** Return the distance of a row from the person, as the service measures it. */
export function distanceTo(row) {
  const weighted = weights();
  const parts = state.model.features.map((feature) => (weighted[feature.name] ?? 1) * apart(feature, state.values[feature.name], row[feature.name]));
  const whole = state.model.features.reduce((sum, feature) => sum + (weighted[feature.name] ?? 1), 0);
  return parts.reduce((sum, part) => sum + part, 0) / whole;
}
