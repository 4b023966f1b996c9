/* The library by folder, a page at a time as it is scrolled. Knows no questions; hooks: whole, the number of
 * pictures where all of the library is shown; list, whether it is a list of pictures of all folders; tools, elements for
 * its head; cover(path, limit) gives a folder's first pictures, and loaded(load) runs what loads a page. */

import { button, byId, icon, make } from "../kit/elements.js";
import * as moves from "../kit/query-links.js";
import { tile } from "../pictures/picture-tile.js";
import * as words from "../kit/text-format.js";

const PAGE = 120; // folders and pictures
const COVER = 4; // pictures

let watching = null; // the IntersectionObserver of the folder that is shown
let covering = null; // that of its folders' covers

/** A folder as it is known so far: what was loaded stays, so that coming back to it is immediate. */
export class Folder {
  folders = []; // {name, pictures: the number of files in it and below}
  pictures = []; // {id, path, sources, thumbnail, original}
  total = 0; // files in it and below
  commits = null; // that it comes from
  more = null; // shows the next page
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

  /** Loads the next page: first the folders, then the pictures. Two calls at once share one. */
  next() {
    this.#loading ??= this.#page().finally(() => (this.#loading = null));
    return this.#loading;
  }

  async #page() {
    const page = await this.load(this.path, this.#after, PAGE);
    this.#begun = true;
    this.#after = page.after ?? null;
    this.total = page.total;
    this.folders.push(...(page.folders ?? []));
    this.pictures.push(...page.pictures);
    return page;
  }
}

/** Shows a folder of which at least the first page is loaded. */
export function show(folder, hooks) {
  leave();
  const folders = make("ul", { class: "folders", "aria-label": "Folders" });
  const pictures = make("ul", { class: "tiles", "aria-label": "Pictures in this folder" });
  const more = button("Show more", null, () => load(), { class: "more" });
  const add = (page) => {
    folders.append(...(page.folders ?? []).map((each) => folderTile(folder.path, each, hooks)));
    pictures.append(...page.pictures.map(tile));
    folders.hidden = !folders.children.length;
    pictures.hidden = !pictures.children.length;
    more.hidden = folder.complete;
  };
  let loading = null; // two calls at once add one page
  const load = () => (loading ??= loadPage().finally(() => (loading = null)));
  const loadPage = async () => {
    const page = await hooks.loaded(() => folder.next());
    if (page) add(page);
    if (page && !more.hidden) watch(more, load); // it may still be in view
  };
  folder.more = load;
  add(folder);
  const parts = [heading(folder, hooks), crumbs(folder.path), !folder.total && nothing(hooks.list), folders, pictures, more];
  byId("browse").replaceChildren(...parts.filter(Boolean));
  watch(more, load);
}

const nothing = (list) =>
  make("p", { class: "nothing" }, list ? "No picture in the library matches these filters." : "The library has no pictures in this folder.");

/** Loads the next page before its button comes into view. */
function watch(more, load) {
  watching?.disconnect();
  watching = new IntersectionObserver(
    (seen) => {
      if (seen.some((each) => each.isIntersecting) && !more.hidden) load();
    },
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

function heading(folder, { whole, list, tools }) {
  const files = list ? words.count(folder.total, "picture") : words.count(folder.total, "file");
  const name = list ? "Pictures" : "The library";
  return make(
    "div",
    { class: "heading" },
    make(whole === null ? "h1" : "h2", { tabindex: -1 }, folder.path ? words.basename(folder.path) : name),
    make("p", { class: "count" }, whole ? `${words.count(whole, "picture")} in ${files}` : files),
    make("div", { class: "tools" }, tools),
  );
}

function crumbs(path) {
  if (!path) return null;
  const parts = path.split("/");
  const links = parts.map((name, place) => {
    const last = place === parts.length - 1;
    const attributes = last ? { "aria-current": "page" } : { href: moves.folderOf(parts.slice(0, place + 1).join("/")) };
    return make("li", {}, make("a", { ...attributes, "data-search": true }, make("bdi", {}, name)));
  });
  const top = make("li", {}, make("a", { href: moves.folderOf(""), "data-search": true }, "The library"));
  return make("nav", { "aria-label": "Folders above" }, make("ol", { class: "crumbs" }, top, ...links));
}

function folderTile(parent, { name, pictures }, hooks) {
  const path = parent ? `${parent}/${name}` : name;
  const cover = make("span", { class: "cover", "data-folder": path }, icon("folder"));
  const number = make("span", { class: "count" }, words.count(pictures, "file"));
  covers(hooks).observe(cover);
  return make("li", {}, make("a", { href: moves.folderOf(path), "data-search": true }, cover, make("bdi", {}, name), number));
}
