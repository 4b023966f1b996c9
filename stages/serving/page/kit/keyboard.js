/* The keys of the page, and the help that lists them. Single keys can be switched off in the help, for people who
 * dictate. Knows no questions. */

import { byId } from "./elements.js";
import { choose, chosen } from "./preferences.js";

const OFF = "single-keys-off";

/** keys: what single keys do. onTile: what they do where a tile has the focus: {view(id), add(id), select(tile, range)}. */
export function connect(keys, onTile) {
  const single = byId("single-keys");
  single.checked = !chosen(OFF);
  single.addEventListener("change", () => choose(OFF, !single.checked));
  const all = { ...keys, "?": () => byId("keys").showModal() };
  byId("help").addEventListener("click", all["?"]);
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => event.target.closest("[data-close]") && dialog.close());
  }
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]") || event.target.closest?.("input, select, textarea, .box")) return;
    const tile = event.target.closest?.(".tile");
    const done = (tile && atTile(event, tile, single.checked, onTile)) || (single.checked && pressed(all[event.key]));
    if (done) event.preventDefault();
  });
}

function atTile(event, tile, single, { view, add, select }) {
  const { id } = tile.dataset;
  if (event.key === " " && event.target.matches("a")) return pressed(() => view(id));
  if (single && event.key === "a") return pressed(() => add(id));
  if (single && event.key.toLowerCase() === "x") return pressed(() => select(tile, event.shiftKey));
  const next = neighbour(event.key, tile);
  next?.querySelector("a").focus();
  return Boolean(next);
}

/** The tile that an arrow key, Home or End leads to. */
function neighbour(key, tile) {
  const tiles = [...tile.parentElement.children].filter((each) => !each.hidden);
  const place = tiles.indexOf(tile);
  const across = tiles.filter((each) => each.offsetTop === tiles[0].offsetTop).length;
  const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[key];
  if (key === "Home") return tiles[0];
  if (key === "End") return tiles.at(-1);
  return by ? tiles[place + by] : undefined;
}

function pressed(action) {
  if (!action) return false;
  action();
  return true;
}
