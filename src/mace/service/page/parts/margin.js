/* How much noise the nearest way stands, asked for when it is wanted. */

import * as api from "../api.js";
import { h } from "../dom.js";
import { number } from "../format.js";
import { t } from "../i18n.js";
import { icon } from "../icons.js";
import { fingerprint, question } from "../question.js";
import { say, state, update } from "../state.js";
import { note } from "./common.js";

const OF_RANGES = "each feature's range";

/** Ask the service, once for each question. */
async function ask() {
  const key = fingerprint();
  update({ margin: { key, found: null, error: "" } });
  const isMine = () => state.margin.key === key;
  try {
    const { margin } = await api.explain({ ...question(), count: 1, certify: false, margin: true }, () => null);
    if (!isMine()) return;
    update({ margin: { key, found: margin ?? null, error: margin ? "" : t("margin.unknown") } });
    if (margin) say(words(margin));
  } catch (error) {
    if (!(error instanceof api.Trouble)) throw error;
    if (isMine()) update({ margin: { key, found: null, error: error.message } });
  }
}

/** What is proved; shares are rounded down. */
function words({ share, noise }) {
  const floor = Math.floor((noise === OF_RANGES ? 100 * share : share) * 100) / 100;
  if (floor === 0) return t("margin.little");
  return t(noise === OF_RANGES ? "margin.ranges" : "margin.times", { number: number(floor) });
}

/** The line below the ways. */
export function marginPart() {
  const { key, found, error } = state.margin;
  if (key !== fingerprint()) return h("div.acts", { "data-key": "margin" }, h("button.small", { "data-margin": "", on: { click: () => ask() } }, t("margin.ask")));
  if (error) return note("no", "info", error);
  if (!found) return h("p.loading", { role: "status", "data-key": "margin" }, t("margin.busy"));
  return h("p.small.exhausted", { "data-key": "margin" }, icon("proof"), words(found));
}
