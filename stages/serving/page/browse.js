/* The library by folder, a page at a time as it is scrolled. Knows no questions; hooks: folder(path) and search(id) give
 * addresses, view(picture) opens the larger view, cover(path, limit) gives a folder's first pictures, and loaded(load) runs
 * what loads a page. */

import { button, byId, icon, make } from "./elements.js";
import { tile } from "./tiles.js";
import * as words from "./words.js";

const PAGE = 120; // pictures
const FOLDERS = 60; // shown before "all folders"

/** A folder as it is known so far: what was loaded stays, so that coming back to it is immediate. */
export class Folder {
  pictures = [];
  folders = [];
  total = 0;
  commits = null;
  #after = null;
  #begun = false;
  #loading = null;

  constructor(path, load) {
    this.path = path;
    this.load = load; // (path, after, limit) => a page, as a promise
  }

  get complete() {
    return this.#begun && this.#after === null;
  }

  /** Loads the next page; gives its pictures. Two calls at once share one. */
  next() {
    this.#loading ??= this.#page().finally(() => (this.#loading = null));
    return this.#loading;
  }

  async #page() {
    if (this.complete) return [];
    const page = await this.load(this.path, this.#after, PAGE);
    this.#begun = true;
    this.#after = page.after ?? null;
    this.total = page.total;
    if (page.folders.length) this.folders = page.folders;
    this.pictures.push(...page.pictures);
    return page.pictures;
  }
}

const COVER = 4; // pictures

let watching = null; // the IntersectionObserver of the folder that is shown
let covering = null; // that of its folders' covers

/** Shows a folder of which at least the first page is loaded. */
export function show(folder, hooks) {
  leave();
  const list = make("ul", { class: "tiles", "aria-label": "Pictures in this folder" });
  const add = (pictures) => list.append(...pictures.map((each) => pictureTile(each, hooks)));
  add(folder.pictures);
  const more = button("Show more", null, () => load(), { class: "more" });
  const load = async () => {
    const pictures = await hooks.loaded(() => folder.next());
    if (!pictures) return;
    add(pictures);
    rest();
  };
  const rest = () => {
    const left = folder.total - folder.pictures.length;
    more.hidden = folder.complete;
    more.querySelector("span").textContent = `Show more of ${words.count(left, "further picture")}`;
  };
  rest();
  byId("browse").replaceChildren(
    ...[heading(folder), crumbs(folder.path, hooks), folders(folder, hooks), list, more].filter(Boolean),
  );
  watching = new IntersectionObserver(
    (seen) => seen.some((each) => each.isIntersecting) && !more.hidden && load(),
    { rootMargin: "800px" },
  );
  watching.observe(more);
}

/** Stops loading further pages and covers. */
export function leave() {
  watching?.disconnect();
  covering?.disconnect();
  covering = null;
}

/** Fills the covers that come into view with the first pictures of their folders; one without any keeps its icon. */
function covers(hooks) {
  const fill = async (cover) => {
    const pictures = await hooks.cover(cover.dataset.folder, COVER);
    const images = pictures.map(({ thumbnail }) => make("img", { src: thumbnail, alt: "", decoding: "async" }));
    if (images.length) cover.replaceChildren(...images);
  };
  covering ??= new IntersectionObserver((seen, observer) => {
    for (const { target } of seen.filter((each) => each.isIntersecting)) {
      observer.unobserve(target);
      fill(target);
    }
  });
  return covering;
}

function heading(folder) {
  const inside = folder.folders.reduce((sum, each) => sum + each.pictures, 0);
  const said = words.count(folder.total + inside, "picture");
  return make(
    "div",
    { class: "heading" },
    make("h2", { tabindex: -1 }, folder.path ? words.basename(folder.path) : "The library"),
    make("p", { class: "count" }, said),
  );
}

function crumbs(path, hooks) {
  if (!path) return null;
  const parts = path.split("/");
  const links = parts.map((name, place) => {
    const last = place === parts.length - 1;
    const attributes = last ? { "aria-current": "page" } : { href: hooks.folder(parts.slice(0, place + 1).join("/")) };
    return make("li", {}, make("a", { ...attributes, "data-search": true }, make("bdi", {}, name)));
  });
  const top = make("li", {}, make("a", { href: hooks.folder(""), "data-search": true }, "The library"));
  return make("nav", { "aria-label": "Folders above" }, make("ol", { class: "crumbs" }, top, ...links));
}

function folders(folder, hooks) {
  if (!folder.folders.length) return null;
  const path = (name) => (folder.path ? `${folder.path}/${name}` : name);
  const item = ({ name, pictures }) => {
    const cover = make("span", { class: "cover", "data-folder": path(name) }, icon("folder"));
    const number = make("span", { class: "count" }, words.count(pictures, "picture"));
    const link = make("a", { href: hooks.folder(path(name)), "data-search": true }, cover, make("bdi", {}, name), number);
    covers(hooks).observe(cover);
    return make("li", {}, link);
  };
  const list = make("ul", { class: "folders", "aria-label": "Folders" }, ...folder.folders.slice(0, FOLDERS).map(item));
  if (folder.folders.length <= FOLDERS) return list;
  const rest = folder.folders.slice(FOLDERS);
  const all = button(`Show all ${words.number(folder.folders.length)} folders`, "folder", () => {
    all.remove();
    list.append(...rest.map(item));
  });
  return make("div", {}, list, all);
}

function pictureTile(picture, hooks) {
  const shown = { id: picture.id, path: picture.path, thumbnail: picture.thumbnail, more: 0, neighbour: null };
  return tile(shown, hooks.search(picture.id), () => hooks.view(picture));
}
