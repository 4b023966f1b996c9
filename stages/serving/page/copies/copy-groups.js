/* Groups of copies as cards: the file to keep, then its copies, each with its thumbnail, its size and what makes it a copy.
 * Knows no service; `ticks` is null where nothing can be removed. */

import { make } from "../kit/elements.js";
import * as words from "../kit/text-format.js";

/** The card of a group as the service gives it. exact: whether its copies can go unseen. ticks: a Selection of paths. */
export function card(group, exact, ticks) {
  const title = `Group ${words.number(group.number)}`;
  const frees = exact ? ` · ${words.bytes(group.frees)} to free` : "";
  return make(
    "section",
    { class: "group", "aria-label": title },
    make("h2", {}, title, make("span", { class: "count" }, `${words.count(group.files.length, "file")}${frees}`)),
    make("ul", { class: "copies", "aria-label": `Files of group ${group.number}` }, group.files.map((each) => row(each, group.why, exact, ticks))),
  );
}

/** The files of a group that go or stay, as names and sizes. */
export const names = (files) =>
  files.map((each) => make("li", {}, make("bdi", {}, each.path), make("span", { class: "count" }, facts(each))));

function row(file, why, exact, ticks) {
  const tick = ticks && make("input", { type: "checkbox", "aria-label": `Remove ${file.path}`, "data-path": file.path });
  if (tick) {
    tick.checked = ticks.has(file.path);
    tick.addEventListener("change", () => ticks.turn(file.path, tick.checked, file.bytes));
  }
  const image = make("img", { src: file.thumbnail, alt: "", loading: "lazy", decoding: "async" });
  image.addEventListener("error", () => image.replaceWith(make("span", { class: "blank" }, "no preview")));
  const kept = exact ? `keep: ${why}` : `probably the original: ${why}`;
  const reason = make("span", { class: `badge ${file.copy ? "near" : "same"}` }, file.copy || kept);
  const shown = file.original ? { href: file.original, target: "_blank", rel: "noopener" } : {};
  return make(
    "li",
    {},
    tick,
    make("a", { class: "picture", "aria-label": `Open ${file.path}`, ...shown }, image),
    make("div", {}, reason, make("p", { class: "path" }, make("bdi", {}, file.path)), make("p", { class: "facts" }, facts(file))),
  );
}

/** "640 × 427 · 57.1 kB · 2019-08-03 16:30" of a file. */
function facts(file) {
  const parts = [words.pixels(file), file.bytes && words.bytes(file.bytes), words.date(file.taken)].filter(Boolean);
  return parts.join(" · ");
}
