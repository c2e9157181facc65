/* How far the proof has come: what is excluded, what is in hand, and what is still open between the two. */

import { h } from "../dom.js";
import { size, sumOfWeights } from "../format.js";
import { t } from "../i18n.js";

const LEAST = 0.02;

/** The bar. `lower` is proved, `upper` is in hand or null; `isAll` where it is proved that there is no way at all. */
export function boundsBar({ lower, upper, weights, isAll = false, isBusy = false }) {
  const scale = Math.max(LEAST / sumOfWeights(weights), upper ?? 0, upper === null ? lower * 1.6 : 0) * (upper === null ? 1 : 1.35);
  const low = isAll ? 1 : Math.min(1, lower / scale);
  const high = upper === null ? 1 : Math.min(1, upper / scale);
  const isClosed = upper !== null && upper - lower <= 1e-6;
  const legend = [
    h("span", {}, h("i.key.proved"), isAll ? t("bounds.all") : lower > 0 ? t("bounds.lower", { size: size(lower, weights) }) : t("bounds.nothing")),
    !isAll && !isClosed && h("span", {}, h("i.key.open"), t("bounds.open")),
    !isAll && h("span", {}, upper !== null && h("i.key.yes"), upper === null ? t("bounds.none") : t("bounds.upper", { size: size(upper, weights) })),
  ];
  return h(
    "div.bounds",
    { "data-key": "bounds" },
    h("p.label", { id: "bounds-title" }, t("bounds.title")),
    h("div.track", { role: "img", "aria-labelledby": "bounds-title bounds-legend", vars: { "--lower": low, "--upper": high }, class: isBusy ? "busy" : null }, h("div.lower"), h("div.upper")),
    h("div.ends", { "aria-hidden": "true" }, h("span", {}, t("bounds.zero")), h("span", {}, t("bounds.larger"))),
    h("div.legend.num", { id: "bounds-legend" }, legend),
    h("p.small", {}, t("bounds.unit")),
  );
}
