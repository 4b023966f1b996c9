/* A picture of the library as a tile: a link that searches on from it, its name, and the way to the larger view.
 * Knows no service. */

import { button, make } from "../kit/elements.js";
import * as words from "../kit/text-format.js";

/** picture: {id, path, thumbnail, more (how many further files), neighbour}; neighbour has rank, distance, similarity,
 * same and near, or is null where the library is browsed. href: of the search on from it. view() opens the larger view.
 */
export function tile(picture, href, view) {
  const name = words.basename(picture.path);
  const image = make("img", { src: picture.thumbnail, alt: "", loading: "lazy", decoding: "async" });
  image.addEventListener("error", () => image.replaceWith(make("span", { class: "blank" }, "no preview")));
  const label = [`Search on from ${name}`, ...said(picture.neighbour)].join(", ");
  const link = make("a", { class: "picture", href, "aria-label": label, "data-search": true }, image);
  const shown = { quiet: true, class: "larger", title: "Larger view (Space)" };
  const larger = button(`Larger view of ${name}`, "expand", view, shown);
  return make(
    "li",
    { class: "tile", "data-id": picture.id },
    make("div", { class: "mat" }, link, larger, picture.neighbour && badges(picture.neighbour)),
    picture.neighbour && measure(picture.neighbour),
    make("p", { class: "name", title: picture.path }, make("bdi", {}, name), more(picture.more)),
  );
}

/** The badge of a neighbour; most have none. */
export function badges(neighbour) {
  if (neighbour.same) return [make("span", { class: "badge same" }, "same picture")];
  return neighbour.near ? [make("span", { class: "badge near" }, "near-duplicate")] : [];
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
  files > 0 && make("span", { class: "more", title: "Equal pictures in the library" }, `+${words.count(files, "file")}`);

function said(neighbour) {
  if (!neighbour) return [];
  const parts = [`distance ${words.distance(neighbour.distance)}`];
  if (neighbour.similarity !== null) parts.push(`similarity ${words.percent(neighbour.similarity)}`);
  if (neighbour.same) parts.push("same picture");
  else if (neighbour.near) parts.push("near-duplicate");
  return parts;
}
