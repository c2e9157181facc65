/* The page starts here. */

import { setTheme, start } from "./actions.js";
import { h, show } from "./dom.js";
import { language, t } from "./i18n.js";
import { listen } from "./keyboard.js";
import { checkFile } from "./parts/certificate.js";
import { body, dock, header } from "./parts/shell.js";
import { drawWith, state } from "./state.js";

const place = (id) => document.querySelector(id);

function draw() {
  document.body.dataset.view = state.view;
  show(place("#top"), header());
  show(place("#shell"), body());
  show(place("#dock"), state.model ? dock() : []);
}

/** A certificate may be dropped anywhere; other files have their own place. */
function takeDrops() {
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    const [file] = event.dataTransfer?.files ?? [];
    if (file && state.model) checkFile(file);
  });
}

document.documentElement.lang = language;
show(place("#skip"), t("skip"));
place("#dock").setAttribute("aria-label", t("views"));
drawWith(draw);
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
listen();
takeDrops();
start();
