/* What the page knows. It lives in memory only: nothing about a person is put in the address, in storage or in a cookie. */

export const state = {
  model: null,
  theme: "light",
  view: "case",
  trouble: null,
  keys: true,
  people: { list: [], total: 0, matching: 0, query: "", filter: null, sort: "number" },
  known: new Map(),
  person: null,
  values: {},
  now: null,
  rules: null,
  open: new Set(),
  target: null,
  atLeast: null,
  atMost: null,
  seconds: 10,
  asking: null,
  answer: null,
  asked: "",
  added: "",
  refused: "",
  tab: "ways",
  way: 0,
  regions: new Map(),
  checks: new Map(),
  trial: { values: {}, shown: [], result: null },
  why: { key: "", found: null, error: "" },
  margin: { key: "", found: null, error: "" },
  letter: { name: "", key: "", nodes: null, error: "" },
  check: { busy: false, verdict: null, error: "", file: "" },
  batch: { job: null, file: "", error: "", about: "changes" },
  audit: { groups: [], job: null, report: null, error: "" },
};

let drawing = null;
let waiting = false;

/** Say what draws the page. */
export function drawWith(draw) {
  drawing = draw;
}

/** Change what the page knows, and draw it again. */
export function update(patch = {}) {
  Object.assign(state, patch);
  if (waiting) return;
  waiting = true;
  queueMicrotask(() => {
    waiting = false;
    drawing?.();
  });
}

let saying = null;

/** Tell a screen reader something, once. */
export function say(text) {
  clearTimeout(saying);
  const place = document.querySelector("#live");
  place.textContent = "";
  saying = setTimeout(() => (place.textContent = text), 60);
}
