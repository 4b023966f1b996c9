/* A picture of the library as a tile: a link to those similar to it, its name, its tick, and the way to the larger view.
 * Knows no service. */

import { button, make } from "../kit/elements.js";
import * as moves from "../kit/query-links.js";
import { selection } from "../kit/selection.js";
import * as words from "../kit/text-format.js";

/** picture: as the service gives it, of a list or of an answer. */
export function tile(picture) {
  const path = pathOf(picture);
  const name = words.basename(path);
  const image = make("img", { src: picture.thumbnail, alt: "", loading: "lazy", decoding: "async" });
  image.addEventListener("error", () => image.replaceWith(make("span", { class: "blank" }, "No preview")));
  const label = [`Find pictures similar to ${name}`, ...said(picture)].join(", ");
  const link = make("a", { class: "picture", href: moves.searchOf(picture.id), "aria-label": label, "data-search": true }, image);
  const shown = { quiet: true, class: "larger", title: "Larger view (Space)" };
  const larger = button(`Larger view of ${name}`, "expand", () => moves.show(picture.id), shown);
  return make(
    "li",
    { class: "tile", "data-id": picture.id },
    make("div", { class: "mat" }, link, larger, tick(picture.id, name)),
    isNeighbour(picture) && likeness(picture),
    make("p", { class: "name", title: path }, make("bdi", {}, name), more(picture.sources.length - 1)),
  );
}

/** The path by which a picture is listed, in an answer that of its first file. */
export const pathOf = ({ path, sources: [first] }) => path ?? first.path;

/** Whether a picture is a neighbour, of an answer: {rank, distance, likeness, similarity}. */
export const isNeighbour = (picture) => "rank" in picture;

/** Turns the tick of a tile; `range`: and those from the tile turned last. */
export function turn(tile, range) {
  const shown = [...tile.parentElement.children].filter((each) => !each.hidden).map((each) => each.dataset.id);
  if (range) selection.turnRange(shown, tile.dataset.id);
  else selection.turn(tile.dataset.id);
}

/** Sets the ticks of all tiles to what is selected. */
export function drawTicks() {
  for (const each of document.querySelectorAll(".tile .tick")) each.checked = selection.has(each.closest(".tile").dataset.id);
}

function tick(id, name) {
  const press = (event) => turn(event.target.closest(".tile"), event.shiftKey);
  const box = make("input", { type: "checkbox", class: "tick", title: "Select (x, Shift for a range)", "aria-label": `Select ${name}`, on: { click: press } });
  box.checked = selection.has(id);
  return box;
}

/** "very similar": how alike a neighbour is. Its distance where the model has no scale of distances. */
export function likeness(neighbour) {
  const word = neighbour.likeness;
  if (!word) return measure(neighbour);
  return make("p", { class: `likeness ${word.replace(" ", "-")}` }, word);
}

/** "distance 0.3647 · 87 %" of a neighbour. */
export function measure(neighbour) {
  const similar = neighbour.similarity;
  return make(
    "p",
    { class: "measure" },
    make("b", { title: `Distance ${neighbour.distance}` }, words.distance(neighbour.distance)),
    similar !== null && make("span", { class: "similar", title: SIMILARITY }, words.percent(similar)),
  );
}

const SIMILARITY = "Calibrated: the share of pairs at this distance that have the same label";

const more = (files) =>
  files > 0 && make("span", { class: "more", title: "Identical pictures in the library" }, `+${words.count(files, "file")}`);

const said = (picture) => (isNeighbour(picture) ? [picture.likeness ?? `distance ${words.distance(picture.distance)}`] : []);
