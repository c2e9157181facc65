/* Drawn signs. They repeat what the text beside them says, so that screen readers skip them. */

import { h } from "./dom.js";

const PATHS = {
  yes: "M5 12.5 10 17.5 19.5 7",
  no: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  locked: "M7 11h10a2 2 0 0 1 2 2v5a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2v-5a2 2 0 0 1 2-2zM8 11V8a4 4 0 0 1 8 0v3",
  unlocked: "M7 11h10a2 2 0 0 1 2 2v5a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2v-5a2 2 0 0 1 2-2zM8 11V8a4 4 0 0 1 7.6-1.800",
  more: "M6 9.500l6 6 6-6",
  clock: "M20.500 12a8.500 8.500 0 1 1-17 0 8.500 8.500 0 0 1 17 0zM12 7v5.300l3.400 2",
  proof: "M12 3l7.500 2.800v5.400c0 4.600-3.100 8-7.500 9.800-4.400-1.800-7.500-5.200-7.500-9.800V5.800zM8.500 12l2.500 2.500 4.500-5",
  stop: "M20.500 12a8.500 8.500 0 1 1-17 0 8.500 8.500 0 0 1 17 0zM6.200 6.200l11.600 11.600",
  sun: "M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM12 3v2.500M12 18.500V21M3 12h2.500M18.500 12H21M5.600 5.600l1.800 1.800M16.600 16.600l1.800 1.800M5.600 18.400l1.800-1.800M16.600 7.400l1.800-1.800",
  moon: "M20 14.500A8.500 8.500 0 1 1 9.500 4a6.800 6.800 0 0 0 10.500 10.500z",
  info: "M20.500 12a8.500 8.500 0 1 1-17 0 8.500 8.500 0 0 1 17 0zM12 11v5.500M12 7.600v.3",
  people: "M9 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7zM2.500 20c.5-3.800 3-6 6.500-6s6 2.200 6.500 6M16 4.500a3.500 3.500 0 0 1 0 6.500M18 14.500c2 .800 3.200 2.700 3.500 5.500",
  way: "M5 19c0-6 14-4 14-10M19 9l-3 2M19 9l2 3M5 21.500a2.500 2.500 0 1 1 0-5",
  rules: "M4 7h9M17 7h3M4 17h3M11 17h9M15 9.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM9 19.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5z",
  batch: "M4 6h16M4 12h16M4 18h10",
  audit: "M5 20V11M12 20V4M19 20v-6",
  up: "M12 19V6M6 12l6-6 6 6",
  down: "M12 5v13M6 12l6 6 6-6",
  print: "M7 9V4h10v5M7 17H4v-7h16v7h-3M7 14h10v6H7z",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  back: "M4 12h15M10 6l-6 6 6 6",
};

/** Return an icon by its name. */
export function icon(name, tone = "") {
  const path = h("path", { d: PATHS[name] });
  const given = { viewBox: "0 0 24 24", width: 20, height: 20, fill: "none", stroke: "currentColor", "stroke-width": 2.1, "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true", class: tone && `tone-${tone}` };
  return h("svg.icon", given, path);
}

/** The sign of the house: a person, the ground that is proved, and the nearest way out. */
export function sign() {
  const ring = h("path", { d: "M24 13a11 11 0 1 1-22 0 11 11 0 0 1 22 0z", "stroke-dasharray": "3 2.600", "stroke-width": 2, stroke: "currentColor", fill: "none" });
  const points = h("path", { d: "M16 13a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM25 5.600a4 4 0 1 1-8 0 4 4 0 0 1 8 0z", fill: "currentColor" });
  return h("svg.sign", { viewBox: "0 0 26 26", width: 26, height: 26, "aria-hidden": "true" }, ring, points);
}
