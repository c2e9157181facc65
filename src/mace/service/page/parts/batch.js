/* Many people at once: a file goes up, a file comes back. */

import * as api from "../api.js";
import { h } from "../dom.js";
import { bytes, number } from "../format.js";
import { t } from "../i18n.js";
import { follow, isEnded } from "../jobs.js";
import { say, state, update } from "../state.js";
import { chip, dropzone, note, segments } from "./common.js";

const LOOK = { done: ["yes", "yes"], failed: ["no", "no"], cancelled: ["open", "info"] };
const FORMATS = { csv: "CSV", parquet: "Parquet", jsonl: "JSON Lines" };

const set = (patch) => update({ batch: { ...state.batch, ...patch } });

async function upload(file) {
  if (file.size > state.model.limits.upload) return set({ error: t("batch.large", { size: bytes(state.model.limits.upload) }), job: null });
  set({ file: file.name, error: "", job: { state: "sending", done: 0, total: null, results: [] } });
  try {
    const rules = state.model.names?.start ?? [];
    const job = await api.startBatch(file, { target: state.model.target, constraints: rules, about: state.batch.about });
    set({ job });
    const ended = await follow(job, (now) => state.batch.job?.id === job.id && (set({ job: now }), true));
    return say(t(`job.${ended.state}`));
  } catch (error) {
    if (!(error instanceof api.Trouble)) throw error;
    say(error.message);
    return set({ error: error.message, job: null });
  }
}

async function save(format) {
  try {
    const name = state.batch.file.replace(/\.\w+$/, "");
    api.download(await api.readResult(state.batch.job.id, format), `${name}-answers.${format}`);
  } catch (error) {
    if (!(error instanceof api.Trouble)) throw error;
    set({ error: error.message });
  }
}

/** How far a job has come. */
export function progress(job, cancel) {
  const { state: at, done, total, proved, errors, remaining, message } = job;
  const isOver = isEnded(job);
  const share = at === "done" ? 1 : total ? done / total : null;
  const told = total ? t("job.count", { done: number(done), total: number(total) }) : t(`job.${at}`);
  return h(
    "div.job",
    { "data-state": at },
    h("div.titlerow", {}, h("strong.num", { role: "status" }, told), isOver ? chip(...LOOK[at], t(`job.${at}`)) : chip("accent", "clock", t(`job.${at}`))),
    h("progress", { max: "1", ...(share === null ? {} : { value: share }), "aria-label": t("job.progress") }),
    h("p.small.num", {}, [typeof proved === "number" && done > 0 && job.kind === "batch" && t("job.proved", { count: number(proved) }), errors > 0 && t("job.errors", { count: errors }), !isOver && remaining && t("job.remaining", { seconds: number(Math.ceil(remaining)) })].filter(Boolean).join(" · ")),
    message && note(at === "failed" ? "no" : "open", "info", message),
    !isOver && job.id && h("div.acts", {}, h("button.small", { on: { click: cancel } }, t("job.cancel"))),
  );
}

/** The view. */
export function batchView() {
  const { job, file, error } = state.batch;
  const cancel = async () => set({ job: await api.cancelJob(job.id) });
  const limits = { rows: number(state.model.limits.batch_rows), size: bytes(state.model.limits.upload), hours: state.model.limits.keep_hours };
  return h(
    "div.narrow",
    {},
    h("header.lead", {}, h("h1", {}, t("batch.title")), h("p", {}, t("batch.lead"))),
    dropzone({ id: "batch-file", title: t("batch.drop"), hint: t("batch.hint", limits), accept: ".csv,.parquet,text/csv", take: upload }),
    segments("batch-about", t("batch.about"), ["changes", "reasons"].map((about) => [about, t(`batch.${about}`)]), state.batch.about, (about) => set({ about })),
    error && note("no", "info", error),
    job && h("section.card.pad", { "aria-label": file, "data-key": "job" }, h("h2", {}, file), progress(job, cancel), job.results?.length > 0 && h("div.acts", {}, job.results.map((format) => h("button", { "data-format": format, on: { click: () => save(format) } }, t("batch.save", { format: FORMATS[format] ?? format }))))),
    h("details", {}, h("summary", {}, t("batch.columns")), h("p.small", {}, h("code", {}, state.model.features.map((feature) => feature.name).join(", ")))),
  );
}
