/* The frame: header, views, dock, messages, and what is shown in each view. */

import { go, setTheme } from "../actions.js";
import { useKey } from "../api.js";
import { h } from "../dom.js";
import { modelName } from "../format.js";
import { t } from "../i18n.js";
import { icon, sign } from "../icons.js";
import { state } from "../state.js";
import { answerPart } from "./answer.js";
import { auditView } from "./audit.js";
import { batchView } from "./batch.js";
import { checkView } from "./certificate.js";
import { decisionPart } from "./decision.js";
import { openHelp } from "./help.js";
import { peopleRail, peopleView } from "./people.js";
import { personPart } from "./person.js";

const VIEWS = [["people", "people"], ["case", "way"], ["rules", "rules"], ["batch", "batch"], ["audit", "audit"], ["check", "proof"]];
const SHOWS = { people: peopleView, case: caseView, rules: caseView, batch: batchView, audit: auditView, check: checkView };

/** The header, with the views for wide windows. */
export function header() {
  const isDark = state.theme === "dark";
  const isHere = (view) => state.view === view || (view === "case" && state.view === "rules");
  const wide = VIEWS.filter(([view]) => view !== "rules");
  return [
    h("div.brand", {}, sign(), h("strong", {}, "MACE"), h("span", {}, state.model ? modelName() : t("brand"))),
    h("nav.views", { "aria-label": t("views") }, wide.map(([view]) => viewButton(view, isHere(view), t(`view.${view}`)))),
    h(
      "div.push",
      {},
      h("button.quiet.square", { "aria-label": t("help.title"), title: t("help.title"), on: { click: openHelp } }, "?"),
      h("button.quiet.square", { "aria-label": t(isDark ? "theme.light" : "theme.dark"), title: t(isDark ? "theme.light" : "theme.dark"), on: { click: () => setTheme(isDark ? "light" : "dark") } }, icon(isDark ? "sun" : "moon")),
    ),
  ];
}

function viewButton(view, isHere, ...content) {
  return h("button", { "data-view": view, "aria-current": isHere ? "page" : null, on: { click: () => go(view) } }, ...content);
}

/** The views for narrow windows. */
export function dock() {
  return VIEWS.map(([view, sign]) => viewButton(view, state.view === view, icon(sign), h("span", {}, t(`dock.${view}`))));
}

/** What is between header and dock. */
export function body() {
  if (!state.model) return h("main", { id: "main", tabindex: "-1", "data-key": "main" }, state.trouble ? trouble() : h("p.loading", { role: "status" }, t("loading")));
  const withRail = state.view === "case" || state.view === "rules";
  const main = h("main", { id: "main", tabindex: "-1", "data-key": "main" }, state.trouble && trouble(), SHOWS[state.view]());
  return [withRail && peopleRail(), main];
}

function caseView() {
  if (!state.person) return h("p.empty", {}, t(state.people.total ? "case.none" : "people.without"));
  return [
    decisionPart(),
    h("div.columns", {}, h("section.left", { "aria-labelledby": "person-title", "data-key": "left" }, personPart()), h("section.right", { "aria-labelledby": "answer-title", "data-key": "right" }, answerPart())),
  ];
}

function trouble() {
  const { message, needsKey, again } = state.trouble;
  const field = needsKey && h("input.field", { type: "password", "aria-label": t("trouble.key"), autocomplete: "off", on: { change: (event) => useKey(event.target.value) } });
  return h("div.trouble", { role: "alert", "data-key": "trouble" }, icon("info"), h("p", {}, needsKey ? t("trouble.key") : message), field, h("button.small", { on: { click: () => again() } }, t("trouble.again")));
}
