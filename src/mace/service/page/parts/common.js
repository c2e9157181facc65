/* Small things that several parts show. */

import { h } from "../dom.js";
import { boundsWords, classWords, hasBounds, isNumeric, labelOf, number, points, valueOf } from "../format.js";
import { t } from "../i18n.js";
import { icon } from "../icons.js";
import { state } from "../state.js";

/** A short fact with a sign: colour never speaks alone. */
export function chip(tone, sign, text) {
  return h("span.chip", { class: tone }, sign && icon(sign), text);
}

/** The decision about a person as a chip. */
export function decisionChip(label) {
  if (label === null || label === undefined) return chip("open", "info", t("people.bad"));
  const { name, tone } = classWords(label);
  return chip(tone, tone, name);
}

/** A message with a sign. */
export function note(tone, sign, ...content) {
  return h("div.note", { class: tone }, icon(sign), h("div", {}, ...content));
}

/** A choice between few things, all visible. */
export function segments(name, label, options, chosen, choose) {
  const one = ([value, text]) => h("label", {}, h("input", { type: "radio", name, value: String(value), checked: value === chosen, on: { change: () => choose(value) } }), h("span", {}, text));
  return h("div.segments", { role: "radiogroup", "aria-label": label }, options.map(one));
}

/** The score against the threshold. */
export function meter(score, threshold, { wanted = null, target = state.target } = {}) {
  if (score === null || score === undefined) return null;
  const isProbability = score >= 0 && score <= 1 && (threshold === null || (threshold >= 0 && threshold <= 1));
  if (!isProbability || isNumeric()) return h("p.num", {}, t("meter.plain", { score: number(Number(score.toPrecision(6))) }), hasBounds() && h("span.small.block", {}, t("meter.bounds", { bounds: boundsWords() })));
  const line = wanted ?? threshold;
  const isGood = line !== null && score >= line;
  const small = classWords(target).small;
  const told = line === null ? "" : wanted === null ? t("meter.threshold", { small, line: points(line) }) : t("meter.wanted", { line: points(line) });
  return h(
    "div.meter",
    { role: "img", "aria-label": `${t("meter.score", { score: points(score) })} ${told}`, vars: { "--score": score, "--line": line ?? 0 } },
    h("div.fill", { class: isGood ? "yes" : "no" }),
    line !== null && h("div.line"),
    h("span.above.num", { class: isGood ? "yes" : "no" }, points(score)),
    told && h("span.below.num", {}, told),
  );
}

/** A value before and after. */
export function beforeAfter(name, before, after) {
  const hidden = (text) => h("span.hidden", {}, `${text} `);
  return h(
    "span.moves.num",
    {},
    h("span.before", {}, hidden(t("now")), valueOf(name, before)),
    h("span.arrow", { "aria-hidden": "true" }, "→"),
    h("strong", {}, hidden(t("instead")), valueOf(name, after)),
  );
}

/** Where every value is proved, of one feature, in words. */
export function rangeWords(name, { low, high, levels }) {
  const label = labelOf(name);
  if (levels) return t("range.levels", { label, levels: levels.map((level) => valueOf(name, level)).join(t("or")) });
  if (low === undefined) return t("range.most", { label, high: valueOf(name, high) });
  if (high === undefined) return t("range.least", { label, low: valueOf(name, low) });
  if (low === high) return t("range.exactly", { label, value: valueOf(name, low) });
  return t("range.between", { label, low: valueOf(name, low), high: valueOf(name, high) });
}

/** A place where files are dropped or chosen. */
export function dropzone({ id, title, hint, accept, take }) {
  const stop = (event, over) => {
    event.preventDefault();
    event.stopPropagation();
    event.currentTarget.classList.toggle("over", over);
  };
  return h(
    "div.dropzone",
    {
      on: {
        dragover: (event) => stop(event, true),
        dragleave: (event) => stop(event, false),
        drop: (event) => {
          stop(event, false);
          if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
        },
      },
    },
    icon("file"),
    h("p", {}, h("strong", {}, title)),
    h("p.small", { id: `${id}-hint` }, hint),
    h("input.hidden", { type: "file", id, accept, "aria-describedby": `${id}-hint`, on: { change: (event) => event.target.files[0] && take(event.target.files[0]) } }),
    h("label.button", { for: id }, t("choose.file")),
  );
}
