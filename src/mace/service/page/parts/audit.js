/* How groups are treated: who is approved, how far it is for the others, and how sure the differences are. */

import * as api from "../api.js";
import { h } from "../dom.js";
import { boundsWords, classWords, dateOf, hasBounds, labelOf, modelName, number, percent, sumOfWeights, valueOf, withUnit } from "../format.js";
import { t } from "../i18n.js";
import { follow } from "../jobs.js";
import { ruleWords } from "../question.js";
import { say, state, update } from "../state.js";
import { progress } from "./batch.js";
import { chip, note } from "./common.js";

const MOST_LEVELS = 12;
const MEASURES = ["granted", "distance", "changes", "touches", "price"];
const HELD = new Set(["touches", "price"]);
const MOST_LEVERS = 8;

const set = (patch) => update({ audit: { ...state.audit, ...patch } });

async function run() {
  set({ error: "", report: null, job: { state: "queued", done: 0, total: null, results: [] } });
  try {
    const job = await api.startAudit({ groups: state.audit.groups, target: state.model.target, rows: state.audit.rows });
    set({ job });
    const ended = await follow(job, (now) => state.audit.job?.id === job.id && (set({ job: now }), true));
    if (ended.state !== "done") return set({ job: ended });
    set({ report: await api.readReport(job.id), job: null });
    return say(t("audit.ready"));
  } catch (error) {
    if (!(error instanceof api.Trouble)) throw error;
    return set({ error: error.message, job: null });
  }
}

/** Features by which people can be grouped: few levels, or numbers, which the service puts into bands; protected ones first. */
function candidates() {
  const few = state.model.features.filter((feature) => (feature.levels ? feature.levels.length <= MOST_LEVELS : feature.protected && feature.kind !== "date"));
  return few.sort((one, other) => Number(other.protected) - Number(one.protected));
}

function form() {
  const chosen = new Set(state.audit.groups);
  const toggle = (name, isOn) => {
    if (isOn) chosen.add(name);
    else chosen.delete(name);
    set({ groups: [...chosen] });
  };
  const one = ({ name, protected: isProtected }) => h("label.check", {}, h("input", { type: "checkbox", "data-group": name, checked: chosen.has(name), on: { change: (event) => toggle(name, event.target.checked) } }), labelOf(name), isProtected && chip("open", null, t("audit.protected")));
  const rows = [100, 200, 500, 1000].filter((count) => count < state.people.total);
  const all = [...rows, state.people.total];
  return h(
    "section.card.pad.form",
    { "aria-label": t("audit.ask") },
    h("div", { role: "group", "aria-label": t("audit.by") }, h("span.label", {}, t("audit.by")), h("div.checks", {}, candidates().map(one))),
    h("div.acts", {}, h("label.label", { for: "audit-rows" }, t("audit.rows")), h("select.field.auto", { id: "audit-rows", value: String(state.audit.rows), on: { change: (event) => set({ rows: Number(event.target.value) }) } }, all.map((count) => h("option", { value: String(count) }, number(count)))), h("button.primary", { "data-audit": "", disabled: !chosen.size || Boolean(state.audit.job), on: { click: run } }, t("audit.run"))),
  );
}

/** Return a measure for people: shares in percent, distances as sizes, counts with two digits. */
function shown(measure, value) {
  if (value === null || value === undefined) return "–";
  if (measure === "granted" || measure === "touches") return percent(value);
  return number(measure === "changes" ? value : value * sumOfWeights(), 2);
}

function difference(measure, value) {
  if (value === null || value === undefined) return "–";
  const sign = value > 0 ? "+" : value < 0 ? "−" : "";
  const size = Math.abs(value);
  if (measure === "granted" || measure === "touches") return sign + t("audit.points", { count: number(Math.round(size * 100)) });
  return sign + number(measure === "changes" ? size : size * sumOfWeights(), 2);
}

/** Return what a group is called; a band of numbers comes as "19 to 26". */
function groupName(column, value) {
  if (!column) return t("audit.everyone");
  if (state.model.features.find(({ name }) => name === column)?.levels) return valueOf(column, value);
  const ends = value.split(" to ").map(Number);
  if (ends.some(Number.isNaN)) return value === "missing" ? t("missing") : value;
  return ends.length === 2 ? withUnit(column, t("range.chip", { low: number(ends[0]), high: number(ends[1]) })) : valueOf(column, ends[0]);
}

/** A measure of every group, with intervals on one axis. */
function intervals(report, measure) {
  const all = [report.everyone, ...report.groups].filter((group) => group.measures[measure].value !== null);
  const ends = all.flatMap(({ measures }) => [measures[measure].low ?? measures[measure].value, measures[measure].high ?? measures[measure].value]);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const space = (most - least || 0.1) * 0.12;
  const [from, to] = [Math.max(0, least - space), measure === "granted" ? Math.min(1, most + space) : most + space];
  const place = (value) => (value - from) / (to - from);
  const middle = place(report.everyone.measures[measure].value);
  const line = ({ column, value, measures, people }) => {
    const { value: mean, low, high, people: counted } = measures[measure];
    return h("div.interval", {}, h("div", {}, groupName(column, value), h("span.small", {}, ` (${number(counted ?? people)})`)), h("div.axis", { "aria-hidden": "true", vars: { "--mean": place(mean), "--low": place(low ?? mean), "--high": place(high ?? mean), "--all": middle } }, h("u"), h("i"), h("b")), h("div.num", {}, h("strong", {}, shown(measure, mean)), low === null ? h("span.small", {}, ` ${t("audit.few")}`) : h("span.small", {}, ` (${t("range.chip", { low: shown(measure, low), high: shown(measure, high) })})`)));
  };
  const heads = (group, place) => group.column && group.column !== all[place - 1]?.column && h("h3.part", {}, labelOf(group.column));
  return h("section.card.pad", {}, h("h2", {}, t(`audit.${measure}.title`)), h("p.small", {}, t(`audit.${measure}.text`)), all.map((group, place) => [heads(group, place), line(group)]), h("div.interval.small", { "aria-hidden": "true" }, h("span"), h("div.axisends.num", {}, h("span", {}, shown(measure, from)), h("span", {}, t("audit.dashed")), h("span", {}, shown(measure, to))), h("span")));
}

function coverage({ everyone }) {
  const { granted, recourse, none, unknown } = everyone.outcomes;
  const one = (count, text) => h("div", {}, h("strong.num", {}, number(count)), h("span.small", {}, text));
  return h("section.card.figures", { "aria-label": t("audit.coverage") }, one(granted, t("audit.outcome.granted")), one(recourse, t("audit.outcome.recourse", { count: number(everyone.proved_nearest) })), one(none, t("audit.outcome.none")), one(unknown, t("audit.outcome.unknown")));
}

function disparities({ disparities: all, everyone, comparisons }) {
  const isTouched = everyone.measures.touches.value > 0;
  const line = ({ column, value, reference, measure, difference: { value: mean, low, high }, is_clear: isClear }) => h("tr", {}, h("th", { scope: "row" }, t("audit.against", { label: labelOf(column), one: groupName(column, value), other: groupName(column, reference) })), h("td", {}, t(`audit.${measure}.short`)), h("td.n", {}, difference(measure, mean)), h("td.n", {}, t("range.chip", { low: difference(measure, low), high: difference(measure, high) })), h("td", {}, isClear ? chip("open", "info", t("audit.clear")) : chip("", null, t("audit.unclear"))));
  const known = all.filter(({ measure, difference: { value } }) => MEASURES.includes(measure) && value !== null && (isTouched || !HELD.has(measure)));
  const rows = known.filter(({ difference: { low } }) => low !== null);
  const few = known.length - rows.length;
  return h("section.card.wide", {}, h("div.pad.flush", {}, h("h2", {}, t("audit.differences")), h("p.small", {}, t("audit.differences.text", { count: number(comparisons) })), few > 0 && h("p.small", {}, t("audit.differences.few", { count: few }))), rows.length > 0 && h("div.scroll", { tabindex: "0", role: "region", "aria-label": t("audit.differences") }, h("table", {}, h("thead", {}, h("tr", {}, ["compared", "what"].map((each) => h("th", { scope: "col" }, t(`audit.head.${each}`))), ["difference", "interval"].map((each) => h("th.n", { scope: "col" }, t(`audit.head.${each}`))), h("th", { scope: "col" }, t("audit.head.verdict")))), h("tbody", {}, rows.map(line)))));
}

function levers({ everyone, protected: held }) {
  const all = Object.entries(everyone.levers).slice(0, MOST_LEVERS);
  const line = ([name, share]) => h("div.lever", {}, h("span", {}, labelOf(name), " ", held.includes(name) && chip("open", null, t("audit.protected"))), h("div.bar", { "aria-hidden": "true", vars: { "--share": share } }, h("i")), h("span.num", {}, percent(share)));
  return h("section.card.pad", {}, h("h2", {}, t("audit.levers")), h("p.small", {}, t("audit.levers.text")), all.map(line));
}

function price({ everyone, protected: held }) {
  const { recourse } = everyone.outcomes;
  const touching = Object.values(everyone.held).reduce((sum, count) => sum + count, 0);
  const names = held.map(labelOf).join(", ");
  return h("section.card.pad", {}, h("h2", {}, t("audit.price.head")), h("p", {}, t("audit.price.first", { count: number(touching), all: number(recourse), names })), touching > 0 && h("p", {}, t("audit.price.second", { count: number(everyone.held.recourse ?? 0), share: everyone.relative_price === null ? "–" : percent(everyone.relative_price) })), note("accent", "info", t("audit.price.note")), h("div.acts", {}, h("button", { on: { click: () => print() } }, t("audit.print")), h("button", { on: { click: () => api.download(JSON.stringify(state.audit.report, null, 1), "audit.json") } }, t("audit.save"))));
}

const wanted = () => [state.model.wish.target !== null && classWords(state.model.wish.target).name, hasBounds() && boundsWords()].filter(Boolean).join(", ");

/** What the report is about: on paper, too, it says so itself. */
function about({ setting, everyone, resamples }) {
  const rules = state.model.rules.map(({ text }) => ruleWords(text)).join("; ");
  const facts = [
    ["model", `${modelName()} (${setting.model})`],
    ["people", number(everyone.people)],
    ["wanted", wanted()],
    ["rules", rules || t("audit.about.norules")],
    ["resamples", t("audit.about.bootstrap", { count: number(resamples) })],
    ["date", `${dateOf(setting.date)}, MACE ${setting.version}`],
  ];
  return h("section.card.pad.wide", {}, h("h2", {}, t("audit.about")), h("dl.facts", {}, facts.map(([kind, text]) => h("div", {}, h("dt", {}, t(`audit.about.${kind}`)), h("dd", {}, text)))));
}

/** The view. */
export function auditView() {
  const { job, report, error } = state.audit;
  if (state.audit.rows === undefined) Object.assign(state.audit, { rows: Math.min(200, state.people.total), groups: candidates().filter((feature) => feature.protected).slice(0, 2).map(({ name }) => name) });
  const cancel = async () => set({ job: await api.cancelJob(job.id) });
  return [
    h("header.lead", {}, h("h1", {}, t("audit.title")), h("p", {}, t("audit.lead"))),
    state.people.total > 0 ? form() : h("p.empty", {}, t("people.without")),
    error && note("no", "info", error),
    job && h("section.card.pad", { "aria-label": t("audit.running"), "data-key": "job" }, progress(job, cancel)),
    report && [coverage(report), h("div.grid", { "data-key": "report" }, intervals(report, "granted"), intervals(report, "distance"), disparities(report), levers(report), price(report), about(report))],
  ];
}
