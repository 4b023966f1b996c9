/* The keys of the page, and the help that lists them. Single keys can be switched off in the help, for people who
 * dictate. Knows no questions: `actions` are functions by name. */

import { byId } from "./elements.js";
import { choose, chosen } from "./preferences.js";

const OFF = "single-keys-off";

/** actions: {address, choose, filter, region, details, newQuestion, turn, add(tile), view(tile), select(tile, range)}. */
export function connect(actions) {
  const single = byId("single-keys");
  single.checked = !chosen(OFF);
  single.addEventListener("change", () => choose(OFF, !single.checked));
  byId("help").addEventListener("click", () => byId("keys").showModal());
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => event.target.closest("[data-close]") && dialog.close());
  }
  const keys = {
    "/": actions.address,
    o: actions.choose,
    f: actions.filter,
    r: actions.region,
    d: actions.details,
    n: actions.newQuestion,
    c: actions.turn,
    "?": () => byId("keys").showModal(),
  };
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]") || event.target.closest?.("input, select, textarea, .box")) return;
    const tile = event.target.closest?.(".tile");
    const done = (tile && onTile(event, tile, actions)) || (single.checked && pressed(keys[event.key]));
    if (done) event.preventDefault();
  });
}

function onTile(event, tile, actions) {
  if (event.key === " " && event.target.matches("a")) return pressed(() => actions.view(tile));
  if (event.key === "a" && byId("single-keys").checked) return pressed(() => actions.add(tile));
  if (event.key.toLowerCase() === "x" && byId("single-keys").checked) return pressed(() => actions.select(tile, event.shiftKey));
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
