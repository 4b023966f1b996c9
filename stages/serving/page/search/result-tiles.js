/* An answer as tiles: neighbours that are near-duplicates of each other are folded behind the nearest of them. Knows
 * neither the service nor the address; the hooks say where a tile leads. */

import { button, make } from "../kit/elements.js";
import { tile } from "../pictures/picture-tile.js";
import { count } from "../kit/text-format.js";

/** Neighbours in groups, nearest first: [[nearest, its near-duplicates…], …]. */
export function folded(neighbours) {
  const groups = new Map();
  for (const neighbour of neighbours) {
    if (!groups.has(neighbour.group)) groups.set(neighbour.group, []);
    groups.get(neighbour.group).push(neighbour);
  }
  return [...groups.values()];
}

/** The list of tiles. unfolded: the Set of groups that are open, which the list keeps up to date. hooks: href(neighbour),
 * view(neighbour), told(words). */
export function tiles(neighbours, unfolded, hooks) {
  const list = make("ul", { class: "tiles", "aria-label": "Nearest pictures" });
  for (const group of folded(neighbours)) list.append(...groupTiles(group, unfolded, hooks));
  return list;
}

function groupTiles(group, unfolded, hooks) {
  const [nearest, ...others] = group;
  const first = neighbourTile(nearest, hooks);
  if (!others.length) return [first];
  const shown = others.map((neighbour) => neighbourTile(neighbour, hooks));
  const number = nearest.group;
  const words = count(others.length, "near-duplicate");
  const control = button("", "stack", () => turn(!unfolded.has(number)), { class: "fold" });
  const turn = (open) => {
    if (open) unfolded.add(number);
    else unfolded.delete(number);
    for (const each of shown) each.hidden = !open;
    first.classList.toggle("folded", !open);
    control.setAttribute("aria-expanded", String(open));
    control.querySelector("span").textContent = open ? `Fold ${others.length}` : `+${words}`;
    control.setAttribute("aria-label", `${open ? "Fold" : "Show"} ${words}`);
  };
  for (const each of shown) each.classList.add("unfolded");
  first.querySelector(".mat").append(control);
  turn(unfolded.has(number));
  control.addEventListener("click", () => hooks.told(`${words} ${unfolded.has(number) ? "shown" : "folded"}`));
  return [first, ...shown];
}

function neighbourTile(neighbour, hooks) {
  const [source] = neighbour.sources;
  const picture = {
    id: neighbour.id,
    path: source.path,
    thumbnail: neighbour.thumbnail,
    more: neighbour.sources.length - 1,
    neighbour,
  };
  return tile(picture, hooks.href(neighbour), () => hooks.view(neighbour));
}
