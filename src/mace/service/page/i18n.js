/* The words of the page, in the language of the reader. */

import { de } from "./texts/de.js";
import { en } from "./texts/en.js";

const CATALOGUES = { en, de };

/** The language: `?lang=de`, or what the browser prefers, or English. */
export const language = chosen();

function chosen() {
  const asked = new URLSearchParams(location.search).get("lang");
  return [asked, ...navigator.languages].map((each) => String(each).slice(0, 2)).find((each) => each in CATALOGUES) ?? "en";
}

/** Return a text of the catalogue, its `{places}` filled in; of a pair, the first is for one and the second for more. */
export function t(key, places = {}) {
  const found = CATALOGUES[language][key] ?? CATALOGUES.en[key];
  if (found === undefined) throw new Error(`no text ${key}`);
  const text = Array.isArray(found) ? found[places.count === 1 ? 0 : 1] : found;
  return text.replace(/\{(\w+)\}/g, (whole, name) => places[name] ?? whole);
}

/** Return a small count as a word. */
export function countWord(count) {
  return t("numbers").split(" ")[count] ?? String(count);
}

/** Return a text with its first letter in upper case. */
export function capital(text) {
  return text.charAt(0).toLocaleUpperCase(language) + text.slice(1);
}
