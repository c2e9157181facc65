/* What if: any value by hand, and what the model, the proof and the rules say of it. */

import { readRegion } from "../actions.js";
import * as api from "../api.js";
import { h } from "../dom.js";
import { hasBounds, labelOf, size, valueOf } from "../format.js";
import { t } from "../i18n.js";
import { answer, brokenBy, distanceTo, target, weights } from "../question.js";
import { say, state, update } from "../state.js";
import { meter, note } from "./common.js";
import { wayTitle } from "./way.js";
import { widget } from "./widgets.js";

/** Open with the values of a way, unless something is being tried already. */
export function open(way) {
  const isSame = state.trial.base === way && Object.keys(state.trial.values).length;
  if (!isSame) tryWay(way);
}

/** Try the values of a way. */
export function tryWay(way) {
  const changes = answer()?.counterfactuals[way]?.changes ?? [];
  const usual = changes.length ? changes.map((change) => change.feature) : state.model.features.filter(({ name }) => !state.rules.locks.has(name) && !state.rules.required.has(name)).slice(0, 4).map(({ name }) => name);
  state.trial = { base: way, values: Object.fromEntries(changes.map((change) => [change.feature, change.after])), shown: usual, result: null };
  update();
  readRegion(way);
  ask();
}

let asking = null;

async function ask() {
  asking?.abort();
  asking = new AbortController();
  const { trial } = state;
  try {
    const said = await api.predict({ row: row(), target: target() }, asking.signal);
    trial.result = { ...said.predictions[0], threshold: said.threshold };
    update();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof api.Trouble)) throw error;
    trial.result = { failed: error.message };
    update();
  }
}

const row = () => ({ ...state.values, ...state.trial.values });

function set(name, value) {
  state.trial.values[name] = value;
  update();
  ask();
}

function isInside(place) {
  const region = state.regions.get(place);
  const way = answer()?.counterfactuals[place];
  if (!region || !way || !Object.keys(region.ends).length) return false;
  const tried = row();
  return state.model.features.every(({ name, kind }) => {
    const ends = region.ends[name];
    if (!ends) return tried[name] === way.values[name];
    if (ends.levels) return ends.levels.includes(tried[name]);
    const at = (value) => (kind === "date" ? Date.parse(value) : value);
    return tried[name] !== null && at(tried[name]) >= at(ends.low) && at(tried[name]) <= at(ends.high);
  });
}

/** Say what is known of the values that are tried: only what is proved is called proved. Regions are proved for a decision, not for a score. */
function verdict(distance) {
  const { result } = state.trial;
  const found = answer();
  if (!result) return ["accent", "info", t("whatif.asking")];
  if (result.failed) return ["no", "info", result.failed];
  if (distance === 0) return ["accent", "info", t("whatif.nothing")];
  const broken = brokenBy(row(), result.broken ?? null);
  const breaks = broken.length ? ` ${t("whatif.breaks", { rules: broken.join("; ") })}` : "";
  if (hasBounds()) return result.reached ? ["open", "info", t("whatif.score") + breaks] : ["no", "no", t("whatif.short") + breaks];
  if ([...state.regions.keys()].some(isInside)) return ["yes", "proof", t("whatif.inside") + breaks];
  if (result.reached) return ["open", "info", t("whatif.outside") + breaks];
  const isProved = found && distance < found.lower && !broken.length && !Object.keys(found.round_to ?? {}).length;
  return isProved ? ["no", "proof", t("whatif.near")] : ["no", "no", t("whatif.refused") + breaks];
}

function tried(name) {
  const feature = state.model.features.find((each) => each.name === name);
  const value = row()[name];
  const zone = !hasBounds() ? (state.regions.get(state.trial.base)?.ends[name] ?? null) : null;
  return h(
    "div.tried",
    { "data-key": `t-${name}`, "data-tried": name },
    h("div", {}, h("div.name", {}, labelOf(name)), h("div.small", {}, t("whatif.now", { value: valueOf(name, state.values[name]) }))),
    h("div.widget", {}, widget(feature, value, { id: `t-${name}`, set: (next) => set(name, next), zone })),
    h("strong.num", {}, feature.kind === "categorical" || feature.kind === "date" ? "" : valueOf(name, value)),
  );
}

function adding() {
  const { trial } = state;
  const rest = state.model.features.filter(({ name }) => !trial.shown.includes(name));
  const add = (event) => {
    if (event.target.value) trial.shown = [...trial.shown, event.target.value];
    event.target.value = "";
    update();
  };
  return h("select.field.auto", { "aria-label": t("whatif.add"), value: "", on: { change: add } }, h("option", { value: "" }, t("whatif.add")), rest.map(({ name }) => h("option", { value: name }, labelOf(name))));
}

function back() {
  Object.assign(state.trial, { values: {}, result: null });
  update();
  ask();
  say(t("whatif.nothing"));
}

/** The tab. */
export function whatifPart(found) {
  const { trial } = state;
  const distance = distanceTo(row());
  const [tone, sign, text] = verdict(distance);
  const known = trial.result && !trial.result.failed;
  const ways = found?.counterfactuals ?? [];
  return [
    h("div.outcome", { "data-key": "outcome" }, known && meter(trial.result.score, trial.result.threshold, { wanted: state.atLeast }), h("div", { role: "status", "data-tone": tone }, note(tone, sign, text, distance > 0 && h("span.num", {}, ` ${t("whatif.size", { size: size(distance, weights()) })}`)))),
    trial.shown.map(tried),
    h("div.acts", {}, adding(), h("button", { on: { click: back } }, t("whatif.back")), ways.map((way, place) => h("button", { on: { click: () => tryWay(place) } }, t("whatif.load", { way: wayTitle(found, place) })))),
  ];
}
