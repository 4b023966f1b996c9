/* A picture of the library as a tile: a link to those similar to it, its name, and the way to the larger view.
 * Knows no service. */

import { button, make } from "../kit/elements.js";
import * as words from "../kit/text-format.js";

/** picture: {id, path, thumbnail, more (how many further files), neighbour}; neighbour has rank, distance, likeness
 * and similarity, or is null where the library is browsed. href: of the search for similar ones. view() opens the larger view.
 */
export function tile(picture, href, view) {
  const name = words.basename(picture.path);
  const image = make("img", { src: picture.thumbnail, alt: "", loading: "lazy", decoding: "async" });
  image.addEventListener("error", () => image.replaceWith(make("span", { class: "blank" }, "No preview")));
  const label = [`Find pictures similar to ${name}`, ...said(picture.neighbour)].join(", ");
  const link = make("a", { class: "picture", href, "aria-label": label, "data-search": true }, image);
  const shown = { quiet: true, class: "larger", title: "Larger view (Space)" };
  const larger = button(`Larger view of ${name}`, "expand", view, shown);
  return make(
    "li",
    { class: "tile", "data-id": picture.id },
    make("div", { class: "mat" }, link, larger),
    picture.neighbour && likeness(picture.neighbour),
    make("p", { class: "name", title: picture.path }, make("bdi", {}, name), more(picture.more)),
  );
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

function said(neighbour) {
  if (!neighbour) return [];
  return [neighbour.likeness ?? `distance ${words.distance(neighbour.distance)}`];
}
