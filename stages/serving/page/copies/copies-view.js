/* The view of copies: pages of groups, each a card with the file to keep, then its copies, and, where the service lets the
 * library be changed, the ticks of files to remove. */

import * as address from "../kit/address.js";
import { byId, make } from "../kit/elements.js";
import * as notices from "../kit/notices.js";
import * as review from "../kit/edit-review.js";
import { Selection } from "../kit/selection.js";
import * as service from "../kit/service-client.js";
import * as words from "../kit/text-format.js";

const PAGE = 50; // groups
const LOOK_EVERY = 2; // seconds
const SELDOM = 8; // looks at a library that is up to date

const KINDS = { exact: ["exact copy", "exact copies"], near: ["group of near copies", "groups of near copies"] };

export class Copies {
  heading = "#copies-title"; // what takes the focus
  tiles = null; // there are none
  pictures = []; // for the larger view, which it does not have
  #page = null; // as the service gave it
  #ticked = new Selection(); // the files to remove, by path, with their bytes

  /** standing: a Standing. */
  constructor(standing) {
    this.standing = standing;
    const others = () => this.#page.groups.flatMap(({ files }) => files.filter((each) => !each.keep));
    byId("copies-all").addEventListener("click", () => this.#ticked.add(others().map(({ path, bytes }) => [path, bytes])));
    byId("copies-none").addEventListener("click", () => this.#ticked.clear());
    this.#ticked.addEventListener("change", () => this.#drawTicks());
    byId("copies-review").addEventListener("click", () => this.#review());
  }

  /** It follows the newest groups by itself. */
  isOld() {
    return false;
  }

  forget() {}

  /** Shows the groups of a state. signal: ends what is under way. */
  async show(state, signal) {
    document.title = "Copies · lookalike";
    const load = () => service.copies({ kind: state.kind || "exact", after: state.after, limit: PAGE }, signal);
    const ask = (waiting) => this.standing.answer(load, { signal, waiting });
    this.#page = await notices.slowly("Loading", "The groups are on their way.", ask);
    this.#draw();
    this.#follow(load, signal);
  }

  /** Draws the page again whenever the library or its groups have changed: soon after a removal, else now and then. */
  async #follow(load, signal) {
    for (let looks = 1; !signal.aborted; looks += 1) {
      await service.pause(LOOK_EVERY, signal).catch(() => {});
      if (signal.aborted || document.hidden || (looks % SELDOM && !this.#isBehind)) continue;
      const before = JSON.stringify(this.#page.commits);
      const page = await load().catch(() => this.#page); // the standing says what is wrong
      if (signal.aborted || JSON.stringify(page.commits) === before) continue;
      this.#page = page;
      this.#draw();
    }
  }

  /** Whether the library has changed since the groups were found. */
  get #isBehind() {
    return this.#page.commits.images !== this.#page.commits.head;
  }

  get #editable() {
    return this.#page.edit && !this.#isBehind;
  }

  #draw() {
    const { kind, groups: shown, totals, copies, frees } = this.#page;
    const exact = kind === "exact";
    byId("copies-title").textContent = words.count(exact ? copies : totals.near, ...KINDS[kind]);
    byId("copies-summary").textContent = exact
      ? `in ${words.count(totals.exact, "group")} · ${words.bytes(frees)} to free`
      : "Look at each before you remove any.";
    byId("copies-kinds").replaceChildren(...Object.keys(KINDS).map((each) => this.#kindLink(each)));
    byId("copies-said").replaceChildren(...this.#said());
    const ticks = this.#editable ? this.#ticked : null;
    byId("copies-groups").replaceChildren(
      ...shown.map((each) => card(each, exact, ticks)),
      ...(shown.length ? [] : [make("p", { class: "nothing" }, exact ? "No exact copies." : "No near copies.")]),
    );
    byId("copies-pages").replaceChildren(...this.#pages());
    byId("copies-ticked").hidden = !this.#editable || !shown.length;
    byId("copies-all").hidden = !exact;
    this.#drawTicks();
  }

  #kindLink(kind) {
    const name = kind === "exact" ? "Exact copies" : "Near copies";
    const current = kind === this.#page.kind && { "aria-current": "page" };
    return link(`${name} (${words.number(this.#page.totals[kind])})`, { kind }, current);
  }

  /** What is to be known of these groups: an older library, missing rights. */
  #said() {
    const { edit, index } = this.#page;
    const said = [];
    if (this.#isBehind) {
      const old = "The library has changed since these groups were found, and copies are being looked for again.";
      said.push(make("p", {}, edit ? `${old} Until that is done, nothing can be ticked.` : old));
    } else if (index !== "same") {
      said.push(make("p", {}, `The index that gives the thumbnails is ${index} than these groups; some may be missing.`));
    }
    if (!edit) {
      said.push(make("p", {}, "This view is read-only. To remove copies here, start the service with ", make("code", {}, "lookalike serve --edit")));
    }
    return said;
  }

  #pages() {
    const { kind, after, totals, groups: shown } = this.#page;
    if (totals[kind] === shown.length) return [];
    const [first, last] = shown.length ? [shown[0].number, shown.at(-1).number] : [Infinity, 0];
    return [
      first > 1 && link(last ? "Previous" : "First page", { kind, after: last && Math.max(0, first - 1 - PAGE) }, { class: "button" }),
      last > 0 && make("span", { class: "count" }, `Groups ${words.number(first)} to ${words.number(last)} of ${words.number(totals[kind])}`),
      after !== null && link("Next", { kind, after }, { class: "button" }),
    ].filter(Boolean);
  }

  #drawTicks() {
    for (const each of byId("copies-groups").querySelectorAll("[data-path]")) each.checked = this.#ticked.has(each.dataset.path);
    const some = this.#ticked.size > 0;
    const size = this.#ticked.values.reduce((sum, each) => sum + each, 0);
    byId("copies-count").textContent = some ? `${words.count(this.#ticked.size, "file")} ticked · ${words.bytes(size)}` : "Tick the files to remove.";
    byId("copies-none").disabled = !some;
    byId("copies-review").disabled = !some;
  }

  async #review() {
    const head = this.#page.commits.images;
    const names = this.#ticked.keys;
    byId("message").replaceChildren();
    try {
      const { count, bytes, groups: going } = await service.review(head, names);
      const verb = `Remove ${words.count(count, "file")}`;
      const size = `${words.bytes(bytes)} in one change `;
      const kept = ". Older versions of the library keep the files: lookalike undo takes the change back.";
      const act = async () => {
        const { removed, commit } = await service.remove(head, names);
        this.#ticked.clear();
        review.report(`${words.count(removed, "copy", "copies")} removed.`, commit);
        this.#page.commits.head = commit;
        this.#draw();
        scrollTo(0, 0);
      };
      review.open({ title: `${verb}?`, sections: going.map(removal), words: [size, ...review.onTopOf(head), kept], verb, act });
    } catch (failure) {
      notices.complain(failure.message);
    }
  }
}

const link = (text, to, attributes) => make("a", { href: address.copies(to), "data-search": true, ...attributes }, text);

/** The card of a group as the service gives it. exact: whether its copies can go unseen. ticks: a Selection of paths. */
function card(group, exact, ticks) {
  const title = `Group ${words.number(group.number)}`;
  const frees = exact ? ` · ${words.bytes(group.frees)} to free` : "";
  return make(
    "section",
    { class: "group", "aria-label": title },
    make("h2", {}, title, make("span", { class: "count" }, `${words.count(group.files.length, "file")}${frees}`)),
    make("ul", { class: "copies", "aria-label": `Files of group ${group.number}` }, group.files.map((each) => row(each, group.why, exact, ticks))),
  );
}

/** What goes and what stays of a group. */
const removal = ({ remove, stay }) =>
  make("section", {}, make("h3", {}, "Goes"), make("ul", {}, names(remove)), make("h3", {}, "Stays"), make("ul", {}, names(stay)));

/** Files as names and sizes. */
const names = (files) =>
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
