/* The letter: what the service writes, with the name filled in here. */

import * as api from "../api.js";
import { h } from "../dom.js";
import { classWords, labelOf, unitOf } from "../format.js";
import { language, t } from "../i18n.js";
import { answer, fingerprint, question } from "../question.js";
import { state, update } from "../state.js";
import { note } from "./common.js";

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
    const said = await api.letter({ ...asked, number: way + 1, language, names, units: units(names), outcomes: outcomes() });
    if (isMine()) update({ letter: { ...state.letter, nodes: paragraphs(said.letter) } });
  } catch (error) {
    if (!(error instanceof api.Trouble)) throw error;
    if (isMine()) update({ letter: { ...state.letter, error: error.message } });
  }
}

const units = (names) => Object.fromEntries(Object.keys(names).map((name) => [name, unitOf(name)]).filter(([, unit]) => unit));

const outcomes = () => Object.fromEntries((state.model.classes ?? []).map((label) => [String(label), classWords(label).small]));

/** Read the letter's text: lists of lines that begin with a dash, and paragraphs. */
function paragraphs(text) {
  const blocks = text.trim().split(/\n\s*\n/);
  return blocks.map((block) => (block.startsWith("- ") ? block.split(/\n(?=- )/).map((line) => oneLine(line.slice(2))) : oneLine(block)));
}

const oneLine = (text) => text.replaceAll(/\s+/g, " ");

/** The title stands first, then the greeting, in whose place the name comes. */
function build(block, place) {
  if (Array.isArray(block)) return h("ul", {}, block.map((line) => h("li", {}, line)));
  if (place === 0) return h("h3", {}, block);
  const name = state.letter.name.trim();
  return h("p", {}, place === 1 && name ? t("letter.dear", { name }) : block);
}

function desk() {
  const type = (event) => update({ letter: { ...state.letter, name: event.target.value } });
  return h(
    "div.desk",
    {},
    h("div", {}, h("label.label", { for: "letter-name" }, t("letter.name")), h("input.field", { id: "letter-name", value: state.letter.name, "data-draft": "", autocomplete: "off", "aria-describedby": "letter-private", on: { input: type } }), h("p.small", { id: "letter-private" }, t("letter.private"))),
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
  const { nodes, error } = state.letter;
  if (error) return note("no", "info", error);
  return [desk(), nodes ? h("article.letter", { "aria-label": t("letter.title"), lang: language }, nodes.map(build), h("p", {}, t("letter.review"))) : h("p.loading", { role: "status" }, t("letter.busy"))];
}
