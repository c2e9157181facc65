/* A value in the widget of its kind: a slider over the population, steps, levels, a calendar, and "missing". */

import { h } from "../dom.js";
import { labelOf, valueOf } from "../format.js";
import { t } from "../i18n.js";

const FINE = 1000;
const MANY = 7;

/** The widget of a feature; `set` is called with the new value, `zone` is where it is proved. */
export function widget(feature, value, { id, set, zone = null }) {
  const isGap = value === null && !feature.levels?.includes(null);
  const shown = isGap ? h("p.small", { id }, t("missing")) : kinds(feature)(feature, value, { id, set, zone });
  return feature.missing ? [shown, missing(feature, value, id, set)] : shown;
}

function kinds({ kind, levels }) {
  if (kind === "date") return calendar;
  if (kind === "categorical" || levels?.length > MANY) return choice;
  return kind === "ordinal" ? steps : slider;
}

function missing(feature, value, id, set) {
  const { population, levels, low } = feature;
  const usual = population?.quartiles?.[1] ?? levels?.[0] ?? low;
  return h("label.check.small", {}, h("input", { type: "checkbox", checked: value === null, "aria-label": t("missing.label", { label: labelOf(feature.name) }), on: { change: (event) => set(event.target.checked ? null : usual) } }), t("missing"));
}

/** The counts of a histogram; of few whole numbers, one for each. */
function bars({ population: { counts }, kind, low, high }) {
  const span = high - low;
  if (kind !== "integer" || span + 1 >= counts.length) return counts;
  return [...Array(span + 1).keys()].map((step) => counts[Math.min(counts.length - 1, Math.floor((step / (span || 1)) * counts.length))]);
}

/** How many people have which value; the bar of this one is marked. */
function histogram(feature, value) {
  const { population, low, high } = feature;
  if (!population?.counts?.length) return null;
  const counts = bars(feature);
  const most = Math.max(...counts);
  const here = Math.min(counts.length - 1, Math.max(0, Math.floor(((value - low) / (high - low || 1)) * counts.length)));
  const drawn = counts.map((count, place) => h("i", { class: place === here ? "here" : null, vars: { "--share": Math.max(count ? 0.06 : 0.02, count / most) } }));
  return h("div.histogram", { "aria-hidden": "true" }, drawn);
}

/** The stretch of a slider that is proved. */
function proved({ low, high }, zone) {
  const place = (value) => (value - low) / (high - low || 1);
  return h("div.zone", { title: t("zone"), vars: { "--from": place(zone.low), "--to": place(zone.high) } }, h("i"));
}

function slider(feature, value, { id, set, zone }) {
  const { name, low, high, kind, step } = feature;
  const fine = kind === "integer" ? 1 : (step ?? niceStep((high - low) / FINE));
  const move = (event) => set(kind === "integer" ? Math.round(Number(event.target.value)) : Number(event.target.value));
  const range = h("input", { type: "range", id, min: low, max: high, step: fine, value: String(value), "aria-label": labelOf(name), "aria-valuetext": valueOf(name, value), on: { input: move } });
  return [histogram(feature, value), zone && zone.low !== undefined && proved(feature, zone), range];
}

function niceStep(raw) {
  return 10 ** Math.floor(Math.log10(raw));
}

function steps({ name, levels }, value, { id, set }) {
  const here = levels.indexOf(value);
  const one = (level, place) => h("label", { class: place <= here ? "filled" : null, title: valueOf(name, level) }, h("input", { type: "radio", name: id, value: String(level), checked: place === here, "aria-label": valueOf(name, level), on: { change: () => set(level) } }), h("span"));
  return h("div.steps", { role: "radiogroup", "aria-label": labelOf(name), id }, levels.map(one));
}

function choice({ name, levels }, value, { id, set }) {
  const choose = (event) => set(levels[event.target.selectedIndex]);
  return h("select.field", { id, value: String(value), "aria-label": labelOf(name), on: { change: choose } }, levels.map((level) => h("option", { value: String(level) }, valueOf(name, level))));
}

function calendar({ name, low, high }, value, { id, set }) {
  const isTime = String(low).includes("T");
  const given = { type: isTime ? "datetime-local" : "date", id, min: low, max: high, value: String(value), "aria-label": labelOf(name), "data-draft": "" };
  return h("input.field", { ...given, on: { change: (event) => event.target.value && set(event.target.value) } });
}
