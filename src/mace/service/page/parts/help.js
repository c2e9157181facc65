/* The keys, and the switch that turns single keys off. */

import { h, show } from "../dom.js";
import { t } from "../i18n.js";
import { state } from "../state.js";

const KEYS = [["/", "search"], ["j  k", "people"], ["1 2 3 4", "tabs"], ["l", "lock"], ["Ctrl Enter", "find"], ["← →", "arrows"], ["?", "help"], ["Esc", "close"]];

/** Open the help. */
export function openHelp() {
  const dialog = document.querySelector("#help");
  const toggle = (event) => (state.keys = event.target.checked);
  show(
    dialog,
    h("h2", { id: "help-title" }, t("help.title")),
    h("table", {}, h("thead.hidden", {}, h("tr", {}, h("th", { scope: "col" }, t("help.key")), h("th", { scope: "col" }, t("help.what")))), h("tbody", {}, KEYS.map(([keys, what]) => h("tr", {}, h("td", {}, h("kbd", {}, keys)), h("td", {}, t(`help.${what}`)))))),
    h("label.check", {}, h("input", { type: "checkbox", id: "single-keys", checked: state.keys, on: { change: toggle } }), t("help.single")),
    h("p.small", {}, t("help.private")),
    h("button", { on: { click: () => dialog.close() } }, t("close")),
  );
  dialog.showModal();
}
