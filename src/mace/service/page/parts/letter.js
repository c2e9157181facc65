/* The letter: what the service writes, with the name filled in here. */

import * as api from "../api.js";
import { h } from "../dom.js";
import { classWords, labelOf, unitOf } from "../format.js";
import { language, t } from "../i18n.js";
import { answer, fingerprint, question } from "../question.js";
import { state, update } from "../state.js";
import { note } from "./common.js";

const ALLOWED = new Set(["P", "UL", "OL", "LI", "STRONG", "EM", "BR", "H1", "H2", "H3"]);
const LETTERS = new Set(["optimal", "feasible", "infeasible"]);

/** Ask the service for the letter of a way, once for each question. */
export async function open(way) {
  const found = answer();
  const key = `${fingerprint()} ${way}`;
  if (!found || !LETTERS.has(found.status) || state.letter.key === key) return;
  update({ way, letter: { ...state.letter, key, nodes: null, error: "" } });
  const isMine = () => state.letter.key === key;
  try {
    const names = Object.fromEntries(state.model.features.filter((feature) => !feature.protected).map(({ name }) => [name, labelOf(name)]));
    const { certify: _, ...asked } = question();
    const said = await api.letter({ ...asked, number: way + 1, html: true, names, units: units(names) });
    if (isMine()) update({ letter: { ...state.letter, nodes: parse(said.letter) } });
  } catch (error) {
    if (!(error instanceof api.Trouble)) throw error;
    if (isMine()) update({ letter: { ...state.letter, error: error.message } });
  }
}

const units = (names) => Object.fromEntries(Object.keys(names).map((name) => [name, unitOf(name)]).filter(([, unit]) => unit));

/** Read the letter's markup: plain elements alone, no attribute. */
function parse(markup) {
  const read = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.nodeType !== Node.ELEMENT_NODE) return null;
    const children = [...node.childNodes].map(read);
    return ALLOWED.has(node.nodeName) ? [node.nodeName.toLowerCase(), children] : children;
  };
  return [...new DOMParser().parseFromString(markup, "text/html").body.childNodes].map(read);
}

const isElement = (node) => Array.isArray(node) && typeof node[0] === "string" && ALLOWED.has(node[0].toUpperCase()) && Array.isArray(node[1]);

function build(node) {
  if (isElement(node)) return h(node[0], {}, node[1].map(build));
  return Array.isArray(node) ? node.map(build) : worded(node);
}

/** Put the names of decisions in place of the model's labels. */
function worded(text) {
  if (typeof text !== "string") return text;
  const label = (state.model.classes ?? []).find((each) => text.trim() === String(each));
  return label === undefined ? text : text.replace(String(label), classWords(label).small);
}

function desk() {
  const type = (event) => update({ letter: { ...state.letter, name: event.target.value } });
  return h(
    "div.desk",
    {},
    h("div", {}, h("label.label", { for: "letter-name" }, t("letter.name")), h("input.field", { id: "letter-name", value: state.letter.name, "data-draft": "", autocomplete: "off", "aria-describedby": "letter-private", on: { input: type } }), h("p.small", { id: "letter-private" }, t("letter.private"))),
    language !== "en" && h("p.small", {}, t("letter.english")),
    h("div.acts", {}, h("button.primary", { "data-print": "", on: { click: () => print() } }, t("letter.print")), ways()),
  );
}

function ways() {
  const count = answer()?.counterfactuals.length ?? 0;
  if (count < 2) return null;
  const options = [...Array(count).keys()].map((place) => h("option", { value: String(place) }, t("letter.way", { number: place + 1 })));
  return h("select.field.auto", { "aria-label": t("letter.which"), value: String(state.way), on: { change: (event) => open(Number(event.target.value)) } }, options);
}

/** The tab. */
export function letterPart(found) {
  if (!found) return h("p.empty", {}, t("letter.wait"));
  if (!LETTERS.has(found.status)) return h("p.empty", {}, t(`letter.${found.status}`));
  const { nodes, error, name } = state.letter;
  if (error) return note("no", "info", error);
  const greeting = h("p", {}, t("letter.dear", { name: name.trim() || t("letter.applicant") }));
  return [desk(), nodes ? h("article.letter", { "aria-label": t("letter.title"), lang: "en" }, greeting, nodes.map(build), h("p", {}, t("letter.review"))) : h("p.loading", { role: "status" }, t("letter.busy"))];
}
