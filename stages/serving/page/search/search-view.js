/* The view of a search: asks, and draws the answer as tiles, in which neighbours that are near-duplicates of each other are
 * folded behind the nearest of them. */

import { ask, table } from "./query-request.js";
import * as details from "../pictures/answer-details.js";
import { button, byId, make } from "../kit/elements.js";
import { grouped } from "../kit/groups.js";
import * as moves from "../kit/query-links.js";
import * as notices from "../kit/notices.js";
import { menu, saveAs } from "../kit/download-menu.js";
import * as options from "./query-options.js";
import { QuestionView } from "./question-view.js";
import { tile } from "../pictures/picture-tile.js";
import * as service from "../kit/service-client.js";
import { olderThan } from "../kit/service-status.js";
import * as words from "../kit/text-format.js";

const LONGEST_TITLE = 80; // characters of words
const IN_ADDRESS = 100; // most pictures that an address can name, with proxies on the way

export class Answers extends QuestionView {
  #shown = null; // what is kept of the question

  heading = "#title"; // what takes the focus
  tiles = "tiles"; // the id of what holds the pictures

  /** Whether the service has a newer index or model than the shown answer comes from. */
  isOld(status) {
    return olderThan(status, this.#shown?.answer.commits);
  }

  /** The pictures on the page in their order, for the larger view. */
  get pictures() {
    return this.#shown?.answer.neighbors ?? [];
  }

  /** Shows the answer to a state. signal: ends what is under way. */
  async show(state, signal) {
    this.#shown = null;
    options.show(state, this.standing.current);
    this.#shown = await this.answered(state, "Search", () => this.#ask(state, signal));
    this.#draw(this.#shown);
    byId("downloads").replaceChildren(menu(this.#downloads(state, this.#shown.answer)));
  }

  #downloads(state, { neighbors: neighbours }) {
    const save = (name, made) => () => made().then((blob) => saveAs(blob, name), (failure) => notices.complain(failure.message));
    const files = neighbours.map(({ id, sources: [first] }) => ({ id, ...first }));
    const { zip } = this.standing.current ?? {};
    const size = files.reduce((sum, { bytes }) => sum + bytes, 0);
    const why = zip && (files.length > zip.files || size > zip.bytes) && `more than ${words.count(zip.files, "file")} or ${words.bytes(zip.bytes)}`;
    const fields = new URLSearchParams(files.map(({ id, number }) => ["id", `${id}:${number}`]));
    const archive = files.length <= IN_ADDRESS ? { href: `/zip?${fields}` } : { save: save("pictures.zip", () => service.zip(fields)) };
    return [
      { words: "Table (CSV)", save: save("pictures.csv", () => table(state, "text/csv")) },
      { words: "Table (Parquet)", save: save("pictures.parquet", () => table(state, "application/vnd.apache.parquet")) },
      { words: `Pictures (zip, ${words.bytes(size)})`, why, ...archive },
    ];
  }

  async #ask(state, signal) {
    busy(true);
    const run = (waiting) => ask(state, { standing: this.standing, signal, sent: notices.sending, waiting });
    try {
      const stop = () => history.back();
      const answer = await notices.slowly("Searching", "Looking for similar pictures.", run, stop);
      options.show(state, this.standing.current); // the defaults are known now
      return answer;
    } finally {
      if (!signal.aborted) busy(false);
    }
  }

  #draw({ answer, unfolded }) {
    const { neighbors: neighbours } = answer;
    const { current } = this.standing;
    const title = titleOf(answer);
    document.title = `${title} · lookalike`;
    byId("title").textContent = title;
    byId("summary").textContent = details.summary(answer, current?.pictures);
    details.show(answer, Boolean(current?.trace));
    this.#drawTiles(answer, unfolded);
    const [nearest] = neighbours;
    const name = nearest ? `, the nearest ${words.basename(nearest.sources[0].path)}` : "";
    notices.tell(`${details.found(neighbours)} found${name}.`);
  }

  #drawTiles(answer, unfolded) {
    const { neighbors: neighbours } = answer;
    const groups = folded(neighbours).filter((group) => group.length > 1);
    const open = groups.length > 0 && groups.every(([first]) => unfolded.has(first.group));
    const fold = byId("fold");
    fold.hidden = groups.length === 0;
    fold.querySelector("span").textContent = open ? "Fold near-duplicates" : "Unfold near-duplicates";
    fold.onclick = () => {
      for (const [first] of groups) unfolded[open ? "delete" : "add"](first.group);
      this.#drawTiles(answer, unfolded);
    };
    const tiles = folded(neighbours).map((group) => groupTiles(group, unfolded));
    const list = tiles.length ? make("ul", { class: "tiles", "aria-label": "Nearest pictures" }, tiles) : nothing();
    const weak = neighbours.length > 0 && neighbours.every((each) => each.likeness === "weak");
    byId("tiles").replaceChildren(...(weak ? [nothingSimilar()] : []), ...aboutWords(answer), list, ...further(answer, this.standing.current?.k?.most ?? 0));
  }
}

/** Neighbours in groups, nearest first: [[nearest, its near-duplicates…], …]. */
const folded = (neighbours) => grouped(neighbours, ({ group }) => group);

/** The tiles of a group. unfolded: the Set of groups that are open, which they keep up to date. */
function groupTiles([nearest, ...others], unfolded) {
  const first = tile(nearest);
  if (!others.length) return [first];
  const shown = others.map(tile);
  const number = nearest.group;
  const said = words.count(others.length, "near-duplicate");
  const control = button("", "stack", () => turn(!unfolded.has(number)), { class: "fold" });
  const turn = (open) => {
    if (open) unfolded.add(number);
    else unfolded.delete(number);
    for (const each of shown) each.hidden = !open;
    first.classList.toggle("folded", !open);
    control.setAttribute("aria-expanded", String(open));
    control.querySelector("span").textContent = open ? `Fold ${others.length}` : `+${said}`;
    control.setAttribute("aria-label", `${open ? "Fold" : "Show"} ${said}`);
  };
  for (const each of shown) each.classList.add("unfolded");
  first.querySelector(".mat").append(control);
  turn(unfolded.has(number));
  control.addEventListener("click", () => notices.tell(`${said} ${unfolded.has(number) ? "shown" : "folded"}`));
  return [first, ...shown];
}

const busy = (on) => byId("results").setAttribute("aria-busy", String(on));

const nothing = () => make("p", { class: "nothing" }, "No picture in the library matches these filters.");

const nothingSimilar = () => make("p", { class: "note" }, "Nothing in the library looks similar. These are the nearest.");

function titleOf({ pictures, combine, text = "", without = [] }) {
  const [first] = pictures;
  const several = pictures.length > 1 && `${combine} of ${pictures.length} pictures`;
  const like = first && `Pictures like ${several || words.basename(first.name || "this one")}`;
  const quoted = `“${text.length > LONGEST_TITLE ? `${text.slice(0, LONGEST_TITLE)}…` : text}”`;
  const said = text && (like ? `and ${quoted}` : `Pictures of ${quoted}`);
  return [like, said, without.length > 0 && `without ${without.join(", ")}`].filter(Boolean).join(" ");
}

/** What to know of an answer to words. */
function aboutWords({ text, without = [], unread }) {
  if (!text && !without.length) return [];
  const cut = unread ? ` The model did not read the end of the text: “${unread}”.` : "";
  return [make("p", { class: "note" }, `The nearest first, with distances. Those from words are on another scale than between pictures.${cut}`)];
}

/** The button for twice as many neighbours, if there may be more. */
function further(answer, most) {
  const k = Math.min(most, answer.k * 2);
  if (folded(answer.neighbors).length < answer.k || k <= answer.k) return [];
  return [button(`Show ${words.number(k)} instead of ${words.number(answer.k)}`, null, () => moves.set({ k }), { class: "more" })];
}
