/* The service. Every answer is JSON; every failure is a `Trouble` with a message for people. */

import { t } from "./i18n.js";

/** A request that was not answered as asked. */
export class Trouble extends Error {
  constructor(message, status = 0, kind = "", retryAfter = 0) {
    super(message);
    Object.assign(this, { status, kind, retryAfter });
  }
}

let key = "";

/** Keep the key of the service, in memory. */
export function useKey(given) {
  key = given;
}

async function send(path, { method = "GET", body, type = "application/json", signal, accept = "application/json" } = {}) {
  const headers = { Accept: accept };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = type;
  const sent = body === undefined || typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, { method, headers, body: sent, signal, credentials: "same-origin", referrerPolicy: "no-referrer" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Trouble(t("trouble.lost"));
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Trouble(said.message ?? t("trouble.status", { status: response.status }), response.status, said.error ?? "", Number(response.headers.get("Retry-After")));
}

const json = async (path, options) => (await send(path, options)).json();
const post = (path, body, signal) => json(path, { method: "POST", body, signal });

/* The demo's names for people; other models have titles and units in their space. */
const NAMES = { "German credit (demo)": "names/german.json" };

/** Read the model, and what its features, levels and decisions are called. */
export async function readModel() {
  const model = await json("/v1/model");
  const names = model.name in NAMES ? await json(NAMES[model.name]) : null;
  return { names, ...model, wish: wishOf(model.target) };
}

/** Return the decision that is wanted, and the bounds on its score; a model that predicts numbers has bounds alone. */
function wishOf(target) {
  const isBound = target !== null && typeof target === "object";
  return isBound ? { target: target.label ?? null, atLeast: target.at_least ?? null, atMost: target.at_most ?? null } : { target, atLeast: null, atMost: null };
}

export const readPeople = (question, signal) => post("/v1/people", question, signal);
export const readPerson = (number) => json(`/v1/people/${number}`);
export const predict = (question, signal) => post("/v1/predict", question, signal);
export const region = (question, signal) => post("/v1/region", question, signal);
export const reasons = (question, signal) => post("/v1/reasons", question, signal);
export const letter = (question, signal) => post("/v1/letter", question, signal);
export const verify = (certificate) => post("/v1/verify", { certificate });

/** Ask for the nearest ways; `hear` is told the bounds as they close. Returns the explanation. */
export async function explain(question, hear, signal) {
  const response = await send("/v1/explain/stream", { method: "POST", body: question, signal, accept: "text/event-stream" });
  for await (const { event, data } of events(response.body)) {
    if (event === "progress") hear(data);
    else if (event === "answer") return data;
    else if (event === "error") throw new Trouble(data.message, data.status ?? 0, data.error ?? "");
  }
  throw new Trouble(t("trouble.cut"));
}

/** Read server-sent events from the body of an answer. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value.replaceAll("\r\n", "\n")).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const made = parsed(block);
      if (made) yield made;
    }
  }
}

function parsed(block) {
  const fields = block.split("\n").filter((line) => line && !line.startsWith(":"));
  const take = (name) => fields.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart());
  const data = take("data").join("\n");
  return data ? { event: take("event")[0] ?? "message", data: JSON.parse(data) } : null;
}

/* Jobs: batches and audits. */

const FILES = { parquet: "application/vnd.apache.parquet", csv: "text/csv" };

/** Start a batch over the rows of a file. Returns the job. */
export async function startBatch(file, question) {
  const { id } = await post("/v1/batch", question);
  const type = file.name.toLowerCase().endsWith(".parquet") ? FILES.parquet : FILES.csv;
  try {
    return await json(`/v1/jobs/${id}/data`, { method: "PUT", body: file, type });
  } catch (error) {
    await removeJob(id).catch(() => null);
    throw error;
  }
}

export const startAudit = (question) => post("/v1/audit", question);
export const readJob = (id) => json(`/v1/jobs/${id}`);
export const cancelJob = (id) => post(`/v1/jobs/${id}/cancel`, {});
export const removeJob = (id) => send(`/v1/jobs/${id}`, { method: "DELETE" });
export const readResult = async (id, format) => (await send(`/v1/jobs/${id}/result?format=${format}`, { accept: "*/*" })).blob();
export const readReport = (id) => json(`/v1/jobs/${id}/result?format=json`);

/** Hand the reader a file. */
export function download(content, name, type = "application/json") {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
