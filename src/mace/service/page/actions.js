/* What the reader does, and what follows. */

import * as api from "./api.js";
import { classWords, goalWords, isNumeric, modelName } from "./format.js";
import { t } from "./i18n.js";
import { blamed, fingerprint, question, startingRules, target } from "./question.js";
import { say, state, update } from "./state.js";

const PATIENCE = 3;
const SHOW_AFTER = 200;
const REST = 250;
const REGION_SECONDS = 5;
const PEOPLE_AT_ONCE = 100;

/** Read the model and the people, and open the first person who was refused. */
export async function start() {
  try {
    const model = await api.readModel();
    update({ model, ...model.wish, trouble: null });
    document.title = `${modelName()} · MACE`;
    await readPeople();
    const first = state.people.list.find((person) => person.reached === false) ?? state.people.list[0];
    if (first) await pick(first.number);
  } catch (error) {
    fail(error, start);
  }
}

let reading = null;

/** Read the people who match what is searched for; `more` adds the next ones. */
export async function readPeople({ more = false } = {}) {
  reading?.abort();
  reading = new AbortController();
  const { query, filter, sort, list } = state.people;
  const asked = { offset: more ? list.length : 0, limit: Math.min(PEOPLE_AT_ONCE, state.model.limits.page), sort };
  if (query.trim()) asked.search = query.trim();
  if (filter !== null) asked.decision = filter;
  try {
    const { people, total, matching } = await api.readPeople(asked, reading.signal);
    update({ people: { ...state.people, list: more ? [...list, ...people] : people, total, matching } });
  } catch (error) {
    if (error.status === 404) update({ people: { ...state.people, list: [], total: 0, matching: 0 } });
    else fail(error, readPeople);
  }
}

/** Show that something went wrong, with a way to try again. */
export function fail(error, again) {
  if (error.name === "AbortError") return;
  if (!(error instanceof api.Trouble)) throw error;
  update({ trouble: { message: error.message, needsKey: error.status === 401, again } });
  say(error.message);
}

/** Open a person. */
export async function pick(number) {
  state.asking?.controller.abort();
  try {
    const person = await api.readPerson(number);
    const fresh = { rules: startingRules(), open: new Set(), answer: null, asked: "", added: "", refused: "", asking: null, tab: "ways", way: 0 };
    update({ person, values: { ...person.row }, now: person, ...state.model.wish, ...fresh, ...forgotten(), trouble: null, seconds: state.model.limits.default_time_limit });
    if (!person.error) await find();
  } catch (error) {
    fail(error, () => pick(number));
  }
}

function forgotten() {
  return { regions: new Map(), checks: new Map(), trial: { values: {}, shown: [], result: null }, why: { key: "", found: null, error: "" }, letter: { ...state.letter, key: "", nodes: null, error: "" } };
}

/** Ask for the nearest ways. */
export async function find({ seconds = null } = {}) {
  state.asking?.controller.abort();
  const controller = new AbortController();
  const asking = { controller, lower: 0, upper: null, number: 1, isShown: false, since: Date.now() };
  update({ asking, seconds: seconds ?? state.seconds, trouble: null });
  const asked = fingerprint();
  const timer = setTimeout(() => update((asking.isShown = true) && {}), SHOW_AFTER);
  try {
    const answer = await api.explain(question(), (heard) => hear(asking, heard), controller.signal);
    if (state.asking !== asking) return;
    update({ answer, asked, added: "", asking: null, way: 0, ...forgotten() });
    remember(answer);
    say(spoken(answer));
    if (state.tab === "whatif") import("./parts/whatif.js").then((part) => part.tryWay(0));
    if (state.tab === "why") import("./parts/why.js").then((part) => part.open());
  } catch (error) {
    if (state.asking === asking) update({ asking: null });
    if (error.kind === "InvalidConstraint" && state.added) takeBack(error);
    else fail(error, find);
  } finally {
    clearTimeout(timer);
  }
}

/** A rule that was just added cannot be read: it goes back to its field, with what is wrong with it. */
function takeBack(error) {
  const text = state.added;
  state.rules.others = state.rules.others.filter((rule) => rule.text !== text);
  update({ added: "", refused: error.message });
  const field = document.querySelector("#add-rule");
  if (field) field.value = text;
  setTimeout(() => document.querySelector(".refused")?.scrollIntoView({ block: "nearest" }));
  if (state.asked !== fingerprint()) find();
}

function hear(asking, { lower, upper, number = 1 }) {
  if (number > 1) return Object.assign(asking, { number });
  asking.lower = Math.max(asking.lower, lower ?? 0);
  if (upper !== null && upper !== undefined) asking.upper = upper;
  return update();
}

function remember(answer) {
  const [first] = answer.counterfactuals;
  state.known.set(state.person.number, { status: answer.status, distance: first?.distance ?? null, changes: first?.changes.length ?? 0, isPlain: !Object.keys(state.rules.efforts).length });
}

function spoken(answer) {
  const words = classWords(state.target);
  const places = { goal: goalWords(), small: words.small, name: words.name };
  if (answer.status === "infeasible") return `${t("infeasible.title")}. ${t("infeasible.blamed", { count: blamed(answer).length })}`;
  const count = answer.counterfactuals.length;
  return `${t(`${answer.status}.title`, places)}. ${count ? t("ways.count", { count }) : ""}`;
}

let resting = null;

/** A rule or a value was changed: draw, and ask again at once where that is quick. */
export function changed({ added = "" } = {}) {
  update({ trouble: null, refused: "", added });
  clearTimeout(resting);
  const isQuick = !state.answer || state.answer.seconds < PATIENCE || added;
  if (isQuick) resting = setTimeout(() => state.asked !== fingerprint() && find(), REST);
}

let scoring = null;

/** A value of the person was edited: its score follows, and the answer. */
export async function editValue(name, value) {
  state.values = { ...state.values, [name]: value };
  update();
  scoring?.abort();
  scoring = new AbortController();
  try {
    const said = await api.predict({ row: state.values, target: target() }, scoring.signal);
    update({ now: { ...said.predictions[0], threshold: said.threshold, score_of: said.score_of } });
    changed();
  } catch (error) {
    fail(error, () => editValue(name, value));
  }
}

export function resetValues() {
  update({ values: { ...state.person.row }, now: state.person });
  changed();
}

/** Go to a view. */
export function go(view) {
  if (state.view !== view) scrollTo(0, 0);
  update({ view });
}

/** Go to a part of the answer. */
export function openTab(tab, way = state.way) {
  update({ tab, way });
  if (tab === "whatif") import("./parts/whatif.js").then((part) => part.open(way));
  if (tab === "compare") import("./parts/compare.js").then((part) => part.open());
  if (tab === "why") import("./parts/why.js").then((part) => part.open());
  if (tab === "letter") import("./parts/letter.js").then((part) => part.open(way));
}

/** Read where every row is proved to have the answer's decision, once for each way; numbers have no such region. */
export async function readRegion(way) {
  const found = state.answer?.counterfactuals[way];
  if (!found || state.regions.has(way)) return;
  const { regions } = state;
  if (isNumeric()) {
    regions.set(way, { ends: {}, complete: false });
    return update();
  }
  regions.set(way, null);
  try {
    const features = found.changes.map((change) => change.feature);
    regions.set(way, await api.region({ row: found.values, features, time_limit: REGION_SECONDS }));
  } catch (error) {
    regions.set(way, { ends: {}, complete: false });
    if (!(error instanceof api.Trouble)) throw error;
  }
  update();
}

/** Put the page into light or dark colours. */
export function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  update({ theme });
}
