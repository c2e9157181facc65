/* Who: everyone of the data, in a table and, beside a case, in a rail. */

import { go, pick, readPeople } from "../actions.js";
import { h } from "../dom.js";
import { caseWord, classWords, isNumeric, number, points, size, valueOf } from "../format.js";
import { t } from "../i18n.js";
import { icon } from "../icons.js";
import { state, update } from "../state.js";
import { decisionChip } from "./common.js";

const SIGNS = { optimal: ["yes", "proof"], feasible: ["open", "clock"], infeasible: ["no", "stop"], unknown: ["open", "clock"], reached: ["yes", "yes"] };
let typing = null;

function ask(patch) {
  update({ people: { ...state.people, ...patch } });
  readPeople();
}

function search(id) {
  const type = (event) => {
    state.people.query = event.target.value;
    clearTimeout(typing);
    typing = setTimeout(() => readPeople(), 150);
  };
  return [h("label.hidden", { for: id }, t("people.search")), h("input.field", { id, type: "search", "data-search": "", "data-draft": "", value: state.people.query, placeholder: t("people.placeholder"), autocomplete: "off", on: { input: type } })];
}

function filters() {
  const one = (value, text) => h("button.pill", { "aria-pressed": String(state.people.filter === value), on: { click: () => ask({ filter: value }) } }, text);
  return h("div.filters", { role: "group", "aria-label": t("people.show") }, one(null, t("people.all")), (state.model.classes ?? []).map((label) => one(label, classWords(label).name)));
}

function count() {
  const { matching, total } = state.people;
  return h("p.small", { role: "status" }, matching ? t("people.count", { matching, total }) : t(total ? "people.nobody" : "people.without"));
}

function moreButton() {
  const { list, matching } = state.people;
  return list.length < matching && h("button.wide", { on: { click: () => readPeople({ more: true }) } }, t("people.more", { count: matching - list.length }));
}

/** What is known of a person's nearest way in this tab. */
function knownLine(person) {
  const known = state.known.get(person.number);
  if (!known) return null;
  const [tone, sign] = SIGNS[known.status];
  return h("span.known", {}, icon(sign, tone), t(`known.${known.status}`, { count: known.changes }));
}

const facts = (person) => Object.entries(person.facts ?? {}).map(([name, value]) => valueOf(name, value)).join(", ");

/** The people beside a case. */
export function peopleRail() {
  const one = (person) => h(
    "li",
    { "data-key": `p${person.number}` },
    h("button.entry", { "data-person": person.number, "aria-current": state.person?.number === person.number ? "true" : null, on: { click: () => pick(person.number) } }, h("span.line", {}, h("strong.num", {}, person.id), decisionChip(person.decision)), facts(person) && h("span.small", {}, facts(person)), knownLine(person)),
  );
  return h("nav.rail", { "aria-label": t("people.title"), "data-key": "rail" }, h("h2", {}, t("people.title")), search("search-rail"), filters(), count(), h("ul.entries", {}, state.people.list.map(one)), moreButton());
}

const COLUMNS = ["id", "decision", "score"];

function heading(column) {
  const { sort } = state.people;
  const isSorted = sort.replace("-", "") === column;
  const next = sort === column ? `-${column}` : column;
  const order = isSorted ? (sort.startsWith("-") ? "descending" : "ascending") : "none";
  return h("th", { scope: "col", "aria-sort": order, class: column === "score" ? "n" : null }, h("button.sort", { on: { click: () => ask({ sort: next }) } }, t(`people.${column}`), h("span", { "aria-hidden": "true" }, order === "ascending" ? " ↑" : order === "descending" ? " ↓" : "")));
}

function row(person) {
  const known = state.known.get(person.number);
  const open = async () => {
    go("case");
    await pick(person.number);
  };
  return h(
    "tr",
    { "data-key": `r${person.number}`, class: state.person?.number === person.number ? "here" : null },
    h("th", { scope: "row" }, h("button.link", { "data-person": person.number, "aria-label": `${caseWord()} ${person.id}`, on: { click: open } }, person.id), facts(person) && h("span.small.block", {}, facts(person))),
    h("td", {}, decisionChip(person.decision), person.error && h("span.small.block", {}, person.error)),
    h("td.n", {}, person.score === null ? "–" : scoreBar(person)),
    h("td", {}, knownLine(person) ?? h("span.small", {}, t(person.reached ? "known.nothing" : "known.not"))),
    h("td.n", {}, known?.distance && known.isPlain ? size(known.distance) : "–"),
  );
}

function scoreBar(person) {
  const isShare = !isNumeric() && person.score >= 0 && person.score <= 1;
  return [isShare && h("span.spark", { "aria-hidden": "true", vars: { "--score": person.score, "--line": state.model.threshold ?? -1 }, class: person.reached ? "yes" : "no" }), h("span.points", {}, isShare ? points(person.score) : number(Number(person.score.toPrecision(6))))];
}

/** The people as a table. */
export function peopleView() {
  const { list, matching } = state.people;
  return [
    h("header.lead", {}, h("h1", {}, t("people.title")), h("p", {}, t("people.lead"))),
    h("div.searchbar", {}, h("div.grow", {}, search("search-table")), filters()),
    count(),
    matching > 0 && h("div.card.scroll", { tabindex: "0", role: "region", "aria-label": t("people.title") }, h("table.people", {}, h("thead", {}, h("tr", {}, COLUMNS.map(heading), h("th", { scope: "col" }, t("people.nearest")), h("th.n", { scope: "col" }, t("people.size")))), h("tbody", {}, list.map(row)))),
    moreButton(),
  ];
}
