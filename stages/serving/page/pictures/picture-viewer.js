/* The viewer: a picture of the library in a dialog, with its files. The list that it steps through is given; knows no
 * service. */

import { button, byId, copying, definitions, icon, make } from "../kit/elements.js";
import { trace } from "./answer-details.js";
import { isNeighbour, likeness, measure, pathOf } from "./picture-tile.js";
import { PictureZoom } from "./picture-zoom.js";
import * as moves from "../kit/query-links.js";
import * as words from "../kit/text-format.js";

const FACTOR = 1.5; // of a key or a button that zooms
const MOVE = 60; // pixels, of an arrow key

let leave = null; // called when the user closes the dialog
let step = null; // (by) => void
let zoom = null;

/** Connects the dialog's own controls and keys, once. */
export function connect() {
  const dialog = byId("viewer");
  dialog.addEventListener("close", () => {
    if (document.fullscreenElement) document.exitFullscreen();
    leave?.();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !pressed(event.key)) return;
    event.preventDefault();
  });
  zoom = new PictureZoom(byId("viewer-picture"), (level) => {
    byId("viewer-fit").textContent = level ? words.percent(100 * level) : "Fit";
  });
  const controls = {
    "viewer-previous": () => step?.(-1),
    "viewer-next": () => step?.(1),
    "viewer-out": () => zoom.by(1 / FACTOR),
    "viewer-fit": () => zoom.fit(),
    "viewer-in": () => zoom.by(FACTOR),
    "viewer-full": turnFull,
  };
  for (const [id, action] of Object.entries(controls)) byId(id).addEventListener("click", action);
  byId("viewer-full").hidden = !document.fullscreenEnabled;
  document.addEventListener("fullscreenchange", () => byId("viewer").open && zoom.fit());
}

function pressed(key) {
  const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [];
  if (x !== undefined && zoom.zoomed) zoom.move(-x * MOVE, -y * MOVE);
  else if (x) step?.(x);
  else if (key === "PageUp" || key === "PageDown") step?.(key === "PageUp" ? -1 : 1);
  else if (!byId("single-keys").checked) return false;
  else if (key === "+" || key === "=") zoom.by(FACTOR);
  else if (key === "-") zoom.by(1 / FACTOR);
  else if (key === "0") zoom.fit();
  else if (key === "f" && document.fullscreenEnabled) turnFull();
  else return false;
  return true;
}

/** A dialog itself cannot fill the screen. */
const turnFull = () =>
  document.fullscreenElement ? document.exitFullscreen() : byId("viewer").querySelector(".window").requestFullscreen();

/** Shows a picture as the service gives it. hooks: asking (whether it can be added to a question), step(by), place ("3 of
 * 12"), first and last, closed(), tracing. */
export function open(picture, hooks) {
  const dialog = byId("viewer");
  const name = words.basename(pathOf(picture));
  leave = hooks.closed;
  step = hooks.step;
  byId("viewer-name").textContent = name;
  byId("viewer-place").replaceChildren(make("span", { class: "unseen" }, `${name}, `), hooks.place);
  byId("viewer-previous").setAttribute("aria-disabled", String(hooks.first));
  byId("viewer-next").setAttribute("aria-disabled", String(hooks.last));
  byId("viewer-about").replaceChildren(
    ...[isNeighbour(picture) && rank(picture), actions(picture, hooks)].filter(Boolean),
    ...picture.sources.map((each) => file(picture, each, hooks)),
  );
  if (!dialog.open) {
    dialog.showModal();
    byId("viewer-picture").focus();
  }
  zoom.show(large(picture, name), picture.sources[0]); // once there is room to fit it
}

/** Closes the dialog without calling closed(). */
export function close() {
  leave = null;
  byId("viewer").close();
}

/** The original, or as the service makes it where the browser cannot show it, or the thumbnail. */
function large(picture, name) {
  const others = [picture.original.replace("originals", "previews"), picture.thumbnail];
  const note = byId("viewer-note");
  const image = make("img", { src: picture.original, alt: name, class: "large", draggable: "false" });
  image.style.background = `url("${picture.thumbnail}") center / contain no-repeat`; // until it is there
  image.addEventListener("load", () => (image.style.background = ""));
  image.addEventListener("error", () => {
    if (!others.length) return;
    image.src = others.shift();
    note.hidden = others.length > 0;
  });
  note.hidden = true;
  return image;
}

const rank = (neighbour) => make("div", { class: "rank" }, neighbour.likeness && likeness(neighbour), measure(neighbour));

function actions({ id }, { asking }) {
  const search = make("a", { class: "button primary", href: moves.searchOf(id), "data-search": true }, icon("search"), "Find similar");
  const add = asking && button("Add to the query", "add", () => moves.add(id));
  return make("div", { class: "actions" }, search, add);
}

function file(picture, source, { tracing }) {
  const download = make(
    "a",
    { class: "button", href: `/originals/${encodeURIComponent(picture.id)}?source=${source.number}&download=1`, download: words.basename(source.path) },
    icon("download"),
    "Download",
  );
  const folder = words.folderOf(source.path);
  const rows = [
    ["Folder", make("a", { href: moves.folderOf(folder), "data-search": true }, make("bdi", {}, folder || "The library"))],
    ["Pixels", words.pixels(source)],
    ["Size", source.bytes > 0 && words.bytes(source.bytes)],
    ["Taken", words.date(source.taken)],
    ["Camera", source.camera],
    ["Lens", source.lens],
    ["Place", place(source)],
    ...Object.entries(source.attributes ?? {}).map(([name, value]) => [words.title(name), make("span", { title: words.scale(name) }, String(words.shown(name, value)))]),
    ["SHA-256", make("code", { title: source.sha256 }, source.sha256)],
  ];
  return make(
    "section",
    { class: "file", "aria-label": source.path },
    make("p", { class: "path" }, make("bdi", {}, source.path)),
    definitions(rows),
    make("div", { class: "actions" }, copying("Copy path", source.path), download, tracing && traced(picture.id, source)),
  );
}

const place = ({ latitude, longitude }) =>
  latitude != null && longitude != null && `${words.degrees(latitude, "NS")}, ${words.degrees(longitude, "EW")}`;

function traced(id, source) {
  const link = trace(id, source.path);
  link.className = "button";
  link.prepend(icon("trace"));
  return link;
}
