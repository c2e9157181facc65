/* Keys for people who do this all day. Single keys can be switched off in the help (WCAG 2.1.4). */

import { find, go, openTab, pick } from "./actions.js";
import { TABS } from "./parts/answer.js";
import { openHelp } from "./parts/help.js";
import { state } from "./state.js";

const NARROW = matchMedia("(max-width: 800px)");

const isTyping = ({ tagName, type }) => tagName === "TEXTAREA" || tagName === "SELECT" || (tagName === "INPUT" && !["range", "radio", "checkbox"].includes(type));

function search() {
  if (NARROW.matches || !document.querySelector("[data-search]")) go("people");
  queueMicrotask(() => document.querySelector("[data-search]").focus());
}

async function step(by) {
  const { list } = state.people;
  const next = list[list.findIndex((person) => person.number === state.person?.number) + by];
  if (!next) return;
  if (state.view !== "rules") go("case");
  await pick(next.number);
  document.querySelector(`.rail [data-person="${next.number}"]`)?.focus();
}

const SINGLE = {
  "/": search,
  "?": openHelp,
  j: () => step(1),
  k: () => step(-1),
  l: (event) => event.target.closest("[data-feature]")?.querySelector("[data-lock]")?.click(),
  ...Object.fromEntries(TABS.map((tab, place) => [String(place + 1), () => state.person && openTab(tab)])),
};

/** Listen to the keys. */
export function listen() {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && state.person) {
      event.preventDefault();
      find();
      return;
    }
    const act = SINGLE[event.key];
    if (!act || !state.keys || !state.model || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    event.preventDefault();
    act(event);
  });
}
