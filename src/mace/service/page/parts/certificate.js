/* Proofs as files: to download, to check here, and to drop on the page. */

import * as api from "../api.js";
import { h } from "../dom.js";
import { bytes, goalWords, labelOf, size, valueOf } from "../format.js";
import { t } from "../i18n.js";
import { say, state, update } from "../state.js";
import { chip, dropzone, note } from "./common.js";

const TONES = { valid: ["yes", "proof"], refuted: ["no", "no"], unchecked: ["open", "info"] };

/** The buttons of a certificate: download, and check it now. */
export function certificateButtons(key, certificate) {
  if (!certificate) return null;
  const text = JSON.stringify(certificate);
  const checked = state.checks.get(key);
  const [tone, sign] = TONES[checked?.outcome] ?? [];
  const said = checked && (checked.busy ? h("span.small", { role: "status" }, t("check.busy")) : h("span", { role: "status" }, chip(tone ?? "open", sign ?? "info", t(`check.${checked.outcome ?? "failed"}.chip`))));
  return [
    h("button.small", { "data-certificate": key, on: { click: () => api.download(text, "certificate.json") } }, t("certificate.download", { size: bytes(text.length) })),
    h("button.small", { "data-check": key, disabled: checked?.busy, on: { click: () => check(key, certificate) } }, t("certificate.check")),
    said,
  ];
}

async function check(key, certificate) {
  const { checks } = state;
  checks.set(key, { busy: true });
  update();
  try {
    const verdict = await api.verify(certificate);
    checks.set(key, verdict);
    say(t(`check.${verdict.outcome}.title`));
  } catch (error) {
    if (!(error instanceof api.Trouble)) throw error;
    checks.set(key, { outcome: null, reason: error.message });
    say(error.message);
  }
  update();
}

/** Check a file that was dropped or chosen. */
export async function checkFile(file) {
  update({ view: "check", check: { busy: true, verdict: null, error: "", file: file.name } });
  const done = (patch) => update({ check: { ...state.check, busy: false, ...patch } });
  if (file.size > state.model.limits.certificate) return done({ error: t("check.large") });
  let certificate;
  try {
    certificate = JSON.parse(await file.text());
  } catch {
    return done({ error: t("check.json") });
  }
  try {
    const verdict = await api.verify(certificate);
    say(t(`check.${verdict.outcome}.title`));
    return done({ verdict, statement: certificate.statement });
  } catch (error) {
    if (!(error instanceof api.Trouble)) throw error;
    say(error.message);
    return done({ error: error.message });
  }
}

function verdictCard({ verdict, statement, file }) {
  const [tone, sign] = TONES[verdict.outcome];
  const { claim } = verdict;
  const weights = statement?.distance?.weights ?? undefined;
  const facts = [
    [t("check.file"), file],
    [t("check.claim"), reasonOf(claim) ?? t(`claim.${claim.status}`, { goal: goalWords() })],
    statement?.constraints?.length > 0 && [t("check.rules"), statement.constraints.map(ruleOf).join("; ")],
    typeof claim.lower === "number" && !claim.reasons && claim.status !== "infeasible" && [t("check.lower"), size(claim.lower, weights)],
    typeof claim.upper === "number" && [t("check.upper"), size(claim.upper, weights)],
  ].filter(Boolean);
  return h(
    "section.card.pad",
    { "aria-label": t("check.result"), "data-key": "verdict", "data-outcome": verdict.outcome },
    note(tone, sign, h("strong", {}, t(`check.${verdict.outcome}.title`)), h("p", {}, t(`check.${verdict.outcome}.text`)), verdict.reason && h("p.small", {}, verdict.reason)),
    h("dl.facts", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd.num", {}, value)))),
    changesOf(statement, claim),
  );
}

/** What a constraint of a statement says, or its kind where it has no text. */
const ruleOf = ({ kind, arguments: [text] }) => (kind === "rule" ? text : kind);

/** What is claimed of reasons; null where the certificate is about something else. */
function reasonOf({ reason, ranges, reasons }) {
  const words = (names) => names.map(labelOf).join(", ") || t("why.always");
  if (reasons) return t("claim.reasons", { names: reasons.sets.map(words).join("; ") });
  if (reason) return t("claim.reason", { names: words(Object.keys(reason)) });
  return ranges ? t("claim.ranges", { names: words(Object.keys(ranges)) }) : null;
}

/** What the certified way changes, where the statement names the person and the claim the way. */
function changesOf(statement, { counterfactual }) {
  const before = statement?.factual;
  if (!before || !counterfactual || Array.isArray(before)) return null;
  const names = Object.keys(counterfactual).filter((name) => JSON.stringify(counterfactual[name]) !== JSON.stringify(before[name]));
  return h("ul.listed", {}, names.map((name) => h("li", {}, t("letter.change", { label: labelOf(name), after: valueOf(name, counterfactual[name]), before: valueOf(name, before[name]) }))));
}

/** The view where certificates are checked. */
export function checkView() {
  const { busy, verdict, error } = state.check;
  return h(
    "div.narrow",
    {},
    h("header.lead", {}, h("h1", {}, t("check.title")), h("p", {}, t("check.lead"))),
    dropzone({ id: "certificate-file", title: t("check.drop"), hint: t("check.hint"), accept: ".json,application/json", take: checkFile }),
    busy && h("p.loading", { role: "status" }, t("check.busy")),
    error && note("no", "info", error),
    verdict && verdictCard(state.check),
  );
}
