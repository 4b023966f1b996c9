/* The larger view: a picture of the library in a dialog, with its files. The list that it steps through and the ways out
 * of it are given; knows neither the service nor the address. */

import { button, byId, copying, icon, make } from "../kit/elements.js";
import { trace } from "./answer-details.js";
import { likeness, measure } from "./picture-tile.js";
import * as words from "../kit/text-format.js";

let leave = null; // called when the user closes the dialog
let step = null; // (by) => void

/** Connects the dialog's own keys, once. */
export function connect() {
  const dialog = byId("viewer");
  dialog.addEventListener("close", () => leave?.());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && !event.target.closest("input, textarea")) step?.(by);
  });
}

/** Shows a picture: {id, thumbnail, original, sources, neighbour}. hooks: href (of the search on from it), add() or null,
 * step(by) or null, closed(), tracing. */
export function open(picture, hooks) {
  const dialog = byId("viewer");
  const [source] = picture.sources;
  leave = hooks.closed;
  step = hooks.step;
  byId("viewer-name").textContent = words.basename(source.path);
  byId("viewer-picture").replaceChildren(...large(picture));
  byId("viewer-about").replaceChildren(
    ...[picture.neighbour && rank(picture.neighbour), actions(hooks)].filter(Boolean),
    ...picture.sources.map((each, place) => file(picture, each, place, hooks.tracing)),
  );
  byId("viewer-steps").replaceChildren(...(hooks.step ? steps(hooks.step) : []));
  if (!dialog.open) dialog.showModal();
}

/** Closes the dialog without calling closed(). */
export function close() {
  leave = null;
  byId("viewer").close();
}

function large(picture) {
  const [{ path }] = picture.sources;
  const note = make("p", { class: "note", hidden: true }, "This browser cannot show this kind of file: its thumbnail.");
  const image = make("img", { src: picture.original, alt: words.basename(path), class: "large" });
  image.addEventListener(
    "error",
    () => {
      image.src = picture.thumbnail;
      note.hidden = false;
    },
    { once: true },
  );
  return [image, note];
}

const rank = (neighbour) => make("div", { class: "rank" }, neighbour.likeness && likeness(neighbour), measure(neighbour));

function actions(hooks) {
  const search = make("a", { class: "button primary", href: hooks.href, "data-search": true }, icon("search"), "Search on from it");
  const add = hooks.add && button("Add to the question", "add", hooks.add);
  return make("div", { class: "actions" }, search, add);
}

function file(picture, source, place, tracing) {
  const download = make(
    "a",
    { class: "button", href: `${picture.original}?source=${place}&download=1`, download: words.basename(source.path) },
    icon("download"),
    "Download",
  );
  return make(
    "div",
    { class: "file" },
    make("p", { class: "path" }, make("bdi", {}, source.path)),
    make("p", { class: "facts" }, words.facts(source)),
    source.sha256 && make("p", { class: "facts" }, "sha256 ", make("code", { title: source.sha256 }, source.sha256)),
    make("div", { class: "actions" }, copying("Copy path", source.path), download, tracing && traced(picture.id, source)),
  );
}

function traced(id, source) {
  const link = trace(id, source.path);
  link.className = "button";
  link.prepend(icon("trace"));
  return link;
}

const steps = (step) => [
  button("Previous picture", "left", () => step(-1), { quiet: true, "aria-keyshortcuts": "ArrowLeft" }),
  button("Next picture", "right", () => step(1), { quiet: true, "aria-keyshortcuts": "ArrowRight" }),
];
