/* One feature: its value in the widget of its kind, its lock, and how it may change. */

import { changed, editValue } from "../actions.js";
import { h } from "../dom.js";
import { labelOf, number, softLabelOf, valueOf } from "../format.js";
import { t } from "../i18n.js";
import { icon } from "../icons.js";
import { directionWords, EFFORTS, isLocked, isRequired, policyDirection } from "../question.js";
import { state, update } from "../state.js";
import { segments } from "./common.js";
import { widget } from "./widgets.js";

function toggleLock(name) {
  const { locks } = state.rules;
  if (!locks.delete(name)) locks.add(name);
  changed();
}

function toggleOpen(name) {
  if (!state.open.delete(name)) state.open.add(name);
  update();
}

/** What is special about a feature, in short. */
function tags(name) {
  const { directions, ranges, barred, efforts } = state.rules;
  const made = [];
  if (isLocked(name)) made.push(h("span.chip", {}, t(isRequired(name) ? "locked.policy" : "locked")));
  else {
    const direction = policyDirection(name) ?? directions[name];
    if (direction) made.push(h("span.chip.accent", {}, icon(direction === "increases" ? "up" : "down"), directionWords(direction, [name])));
    if (ranges[name]) made.push(h("span.chip.accent", {}, t("range.chip", { low: valueOf(name, ranges[name][0]), high: valueOf(name, ranges[name][1]) })));
    if (barred[name]?.size) made.push(h("span.chip.accent", {}, t("barred.chip", { count: barred[name].size })));
    const effort = Object.keys(EFFORTS).find((each) => EFFORTS[each] === (efforts[name] ?? 1));
    if (effort !== "normal") made.push(h("span.chip.accent", {}, t(`effort.${effort}.chip`)));
  }
  if (state.values[name] !== state.person.row[name]) made.push(h("span.chip.open", {}, t("edited.chip")));
  return made.length > 0 && h("div.tags", {}, made);
}

/** A row of the person. */
export function featureRow(feature) {
  const { name } = feature;
  const [label, value, locked, open] = [labelOf(name), state.values[name], isLocked(name), state.open.has(name)];
  const showsValue = feature.kind !== "categorical" && feature.kind !== "date";
  const lockLabel = t(locked ? "lock.closed" : "lock.open", { label });
  return h(
    "li.feature",
    { "data-key": `f-${name}`, "data-feature": name, class: locked ? "locked" : null },
    h(
      "div.head",
      {},
      h("div", {}, h("div.name", {}, softLabelOf(name)), showsValue && h("div.value.num", {}, valueOf(name, value)), tags(name)),
      h("div.widget", {}, widget(feature, value, { id: `v-${name}`, set: (next) => editValue(name, next) })),
      h(
        "div.tools",
        {},
        h("button.tool", { "data-lock": name, "aria-pressed": String(locked), "aria-label": lockLabel, title: lockLabel, disabled: isRequired(name), on: { click: () => toggleLock(name) } }, icon(locked ? "locked" : "unlocked")),
        h("button.tool.more", { "data-more": name, "aria-expanded": String(open), "aria-label": t("how.label", { label }), title: t("how.label", { label }), on: { click: () => toggleOpen(name) } }, icon("more")),
      ),
    ),
    open && h("div.how", {}, how(feature, label)),
  );
}

function how(feature, label) {
  const { name } = feature;
  if (isRequired(name)) return h("p.small", {}, t("how.policy"));
  if (isLocked(name)) return h("p.small", {}, t("how.locked"));
  return [direction(feature, label), effort(name, label), feature.levels ? levels(feature, label) : range(feature, label)];
}

function direction({ name, kind }, label) {
  if (kind === "categorical") return null;
  if (policyDirection(name)) return h("p.small", {}, t("how.direction"));
  const { directions } = state.rules;
  const choose = (value) => {
    if (value) directions[name] = value;
    else delete directions[name];
    changed();
  };
  const options = [["", t("direction.free")], ...["increases", "decreases"].map((verb) => [verb, directionWords(verb, [name])])];
  return h("div", {}, h("span.label", {}, t("direction.title")), segments(`direction-${name}`, t("direction.label", { label }), options, directions[name] ?? "", choose));
}

function effort(name, label) {
  const choose = (weight) => {
    if (weight === 1) delete state.rules.efforts[name];
    else state.rules.efforts[name] = weight;
    changed();
  };
  const options = Object.entries(EFFORTS).map(([each, weight]) => [weight, t(`effort.${each}`)]);
  return h("div", {}, h("span.label", {}, t("effort.title")), segments(`effort-${name}`, t("effort.label", { label }), options, state.rules.efforts[name] ?? 1, choose));
}

function range(feature, label) {
  const { name, low, high, kind, step } = feature;
  const { ranges } = state.rules;
  const now = ranges[name] ?? [low, high];
  const set = (place, text) => {
    const next = [...now];
    const value = kind === "date" ? text : Number(text);
    next[place] = text === "" || value < low ? [low, high][place] : value > high ? high : value;
    if (next[0] > next[1]) next[1 - place] = next[place];
    if (next[0] === low && next[1] === high) delete ranges[name];
    else ranges[name] = next;
    changed();
  };
  const end = (place) => h("input.field.num", { type: kind === "date" ? "date" : "number", min: low, max: high, step: kind === "integer" ? 1 : (step ?? "any"), value: String(now[place]), "data-draft": "", "aria-label": t(place ? "range.highest" : "range.lowest", { label }), on: { change: (event) => set(place, event.target.value) } });
  const limits = kind === "date" ? "" : t("range.limits", { low: number(low), high: number(high) });
  return h("div.wide", {}, h("span.label", {}, t("range.title")), h("div.pair", {}, end(0), h("span", {}, t("and")), end(1), h("span.small", {}, limits)));
}

function levels(feature, label) {
  const { barred } = state.rules;
  const toggle = (level, isAllowed) => {
    const set = (barred[feature.name] ??= new Set());
    if (isAllowed) set.delete(level);
    else if (set.size < feature.levels.length - 1) set.add(level);
    if (!set.size) delete barred[feature.name];
    changed();
  };
  const one = (level) => h("label.check", {}, h("input", { type: "checkbox", checked: !barred[feature.name]?.has(level), on: { change: (event) => toggle(level, event.target.checked) } }), valueOf(feature.name, level));
  return h("div.wide", { role: "group", "aria-label": t("levels.label", { label }) }, h("span.label", {}, t("levels.title")), h("div.checks", {}, feature.levels.map(one)));
}
