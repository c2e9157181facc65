/* What may change: every feature of the person with its widget, and the rules across features. */

import { changed, resetValues } from "../actions.js";
import { h } from "../dom.js";
import { groupOf, groupOrder, groupTitle, ruleName } from "../format.js";
import { t } from "../i18n.js";
import { isEdited, mayChange, startingRules } from "../question.js";
import { state, update } from "../state.js";
import { note } from "./common.js";
import { featureRow } from "./feature.js";

function groups() {
  const made = new Map();
  for (const feature of state.model.features) made.set(groupOf(feature.name), [...(made.get(groupOf(feature.name)) ?? []), feature]);
  const order = groupOrder();
  return [...made].sort(([one], [other]) => order.indexOf(one) - order.indexOf(other));
}

function group([key, features]) {
  return h("div.group", { "data-key": `g-${key}` }, h("h3", {}, groupTitle(key)), h("ul.card.features", {}, features.map(featureRow)));
}

function ruleRow(rule, number) {
  const toggle = (event) => {
    rule.on = event.target.checked;
    changed();
  };
  const id = `rule-${number}`;
  return h("li", {}, h("input", { type: "checkbox", id, checked: rule.on, disabled: rule.required, on: { change: toggle } }), h("div", {}, h("label", { for: id }, ruleName(rule.text)), rule.required && h("span.chip", {}, t("policy")), h("code", {}, rule.text)));
}

function addRule(event) {
  event.preventDefault();
  const field = event.target.elements.rule;
  const text = field.value.trim();
  if (!text) return;
  state.rules.others.push({ text, required: false, on: true });
  field.value = "";
  changed({ added: text });
}

/** What the service says of a rule that it cannot read, where one was just added. */
function refusedRule() {
  const { refused } = state;
  return refused && h("div.refused", { role: "alert", "data-key": "refused" }, note("no", "info", t("rules.refused"), h("code", {}, refused)));
}

function otherRules() {
  const { others } = state.rules;
  return h(
    "div.group",
    { "data-key": "g-rules" },
    h("h3", {}, t("rules.title")),
    h("div.card", {}, others.length > 0 && h("ul.rules", {}, others.map(ruleRow)), h("form.addrule", { on: { submit: addRule } }, h("label.label", { for: "add-rule" }, t("rules.add")), h("div.pair", {}, h("input.field", { id: "add-rule", name: "rule", autocomplete: "off", spellcheck: "false", "data-draft": "", "aria-invalid": state.refused ? "true" : null, placeholder: t("rules.example") }), h("button", {}, t("rules.use"))), refusedRule())),
  );
}

/** The whole of a person. */
export function personPart() {
  const forget = () => {
    update({ rules: startingRules() });
    changed();
  };
  return [
    h("div.titlerow", {}, h("h2", { id: "person-title" }, t("person.title")), h("span.small", {}, t("person.count", { count: mayChange(), total: state.model.features.length }))),
    isEdited() && h("div.edited", { "data-key": "edited" }, h("p", {}, h("strong", {}, t("edited.title")), " ", t("edited.text")), h("button.small", { on: { click: resetValues } }, t("edited.reset"))),
    groups().map(group),
    otherRules(),
    h("button.small", { on: { click: forget } }, t("rules.reset")),
  ];
}
