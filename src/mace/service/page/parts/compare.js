/* Ways side by side. */

import { readRegion } from "../actions.js";
import { h } from "../dom.js";
import { labelOf, points, size, sizeWords, valueOf } from "../format.js";
import { t } from "../i18n.js";
import { allowedEnds, weights } from "../question.js";
import { state } from "../state.js";
import { rangeWords } from "./common.js";
import { wayTitle } from "./way.js";

/** Read the proved regions of all ways. */
export async function open() {
  for (const place of state.answer?.counterfactuals.keys() ?? []) await readRegion(place);
}

function featureLine(name, ways) {
  const cell = (way) => {
    const change = way.changes.find((each) => each.feature === name);
    return change ? h("td.hit", {}, h("strong", {}, valueOf(name, change.after))) : h("td.stays", {}, t("compare.stays"));
  };
  return h("tr", {}, h("th", { scope: "row" }, labelOf(name)), h("td", {}, valueOf(name, state.values[name])), ways.map(cell));
}

function figures(found) {
  const { counterfactuals: ways, score } = found;
  const shown = (value) => (typeof value === "number" ? points(value) : "–");
  const line = (title, now, cell) => h("tr", {}, h("th", { scope: "row" }, title), h("td.num", {}, now), ways.map((way, place) => h("td.num", {}, cell(way, place))));
  return [
    line(t("compare.count"), "", (way) => way.changes.length),
    line(t("compare.size"), "", (way) => [size(way.distance, weights()), h("span.small.block", {}, sizeWords(way.distance, weights()))]),
    line(t("compare.score"), shown(score), (way) => shown(way.score)),
    line(t("compare.region"), "", (way, place) => regionWords(place)),
  ];
}

function regionWords(place) {
  const region = state.regions.get(place);
  if (!region) return h("span.small", {}, t("compare.asking"));
  const parts = Object.entries(region.ends).map(([name, ends]) => [name, allowedEnds(name, ends)]).filter(([, ends]) => ends);
  if (!parts.length) return h("span.small", {}, t("compare.unknown"));
  return h("span.small", {}, parts.map(([name, ends]) => h("span.block", {}, rangeWords(name, ends))));
}

/** The table of ways. */
export function comparePart(found) {
  if (!found?.counterfactuals.length) return h("p.empty", {}, t("compare.none"));
  const { counterfactuals: ways } = found;
  const names = state.model.features.map((feature) => feature.name).filter((name) => ways.some((way) => way.changes.some((change) => change.feature === name)));
  return [
    h("div.scroll", { tabindex: "0", role: "region", "aria-label": t("compare.title") }, h("table.compare", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("compare.what")), h("th", { scope: "col" }, capitalNow()), ways.map((way, place) => h("th", { scope: "col" }, wayTitle(found, place))))), h("tbody", {}, names.map((name) => featureLine(name, ways)), figures(found)))),
    h("p.small.below", {}, t("compare.note")),
  ];
}

const capitalNow = () => t("compare.now");
