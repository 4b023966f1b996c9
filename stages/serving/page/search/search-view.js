/* The view of a question: asks, keeps the newest answers so that going back is immediate, and draws them. */

import * as address from "../kit/address.js";
import { ask } from "./query-request.js";
import * as details from "../pictures/answer-details.js";
import { button, byId, make } from "../kit/elements.js";
import * as moves from "./query-links.js";
import * as notices from "../kit/notices.js";
import * as options from "./query-options.js";
import * as query from "./query-pictures.js";
import * as results from "./result-tiles.js";
import { olderThan } from "../kit/service-status.js";
import { lookUp } from "../pictures/picture-lookup.js";
import * as words from "../kit/text-format.js";

const KEPT = 50;
const SLOW = 400; // milliseconds after which the page says that it searches

export class Answers {
  #kept = new Map(); // address -> {answer, unfolded: the groups of near-duplicates that are open}
  #shown = null; // one of its values

  /** standing: a Standing. choose(): lets the user choose a picture to add. */
  constructor(standing, choose) {
    this.standing = standing;
    this.choose = choose;
  }

  heading = "#title"; // what takes the focus
  tiles = "tiles"; // the id of what holds the pictures

  /** Whether the service has a newer index or model than the shown answer comes from. */
  isOld(status) {
    return olderThan(status, this.#shown?.answer.commits);
  }

  /** The pictures on the page in their order, for the larger view. */
  get pictures() {
    return (this.#shown?.answer.neighbours ?? []).map((each) => ({ ...each, neighbour: each }));
  }

  forget() {
    this.#kept.clear();
  }

  /** Shows the answer to a state. signal: ends what is under way. */
  async show(state, signal) {
    this.#shown = null;
    options.show(state, this.standing.current);
    const key = address.write({ ...state, show: null });
    let kept = this.#kept.get(key);
    await this.#showQuery(state, kept?.answer);
    if (!kept) {
      kept = { answer: await this.#ask(state, signal), unfolded: new Set() };
      this.#keep(key, kept);
      options.show(state, this.standing.current); // the defaults are known now
      await this.#showQuery(state, kept.answer);
    }
    this.#shown = kept;
    this.#draw(kept);
  }

  #keep(key, kept) {
    this.#kept.set(key, kept);
    if (this.#kept.size > KEPT) this.#kept.delete(this.#kept.keys().next().value);
  }

  async #ask(state, signal) {
    busy(true);
    const slow = setTimeout(() => notices.notice("wait", "Searching", "The nearest pictures are on their way."), SLOW);
    const work = {
      standing: this.standing,
      signal,
      sent: (share) => share < 1 && notices.notice("wait", "Sending", words.share(share), { share }),
      waiting: (reason) => {
        clearTimeout(slow);
        notices.waiting(reason, () => history.back());
      },
    };
    try {
      return await ask(state, work);
    } finally {
      clearTimeout(slow);
      if (!signal.aborted) busy(false);
    }
  }

  async #showQuery(state, answer) {
    const fit = this.standing.current?.model?.fit;
    const known = await Promise.all(state.pictures.map((each, place) => lookUp(each, answer?.pictures[place], fit)));
    query.show(state.pictures, known, state.combine, {
      verb: "Search",
      draw: (place, box) => moves.ask(state.pictures.map((each, at) => (at === place ? { ...each, box } : each))),
      remove: (place) => moves.ask(state.pictures.filter((_, at) => at !== place)),
      combine: (combine) => moves.set({ combine }),
      add: this.choose,
    });
  }

  #draw({ answer, unfolded }) {
    const { neighbours } = answer;
    const { current } = this.standing;
    const title = `Pictures like ${titleOf(answer)}`;
    document.title = `${title} · lookalike`;
    byId("title").textContent = title;
    byId("summary").textContent = details.summary(answer, current?.pictures);
    details.show(answer, Boolean(current?.trace));
    this.#drawTiles(answer, unfolded);
    const [nearest] = neighbours;
    const name = nearest ? `, the nearest ${words.basename(nearest.sources[0].path)}` : "";
    notices.tell(`${words.count(neighbours.length, "picture")} found${name}.`);
  }

  #drawTiles(answer, unfolded) {
    const { neighbours } = answer;
    const groups = results.folded(neighbours).filter((group) => group.length > 1);
    const open = groups.length > 0 && groups.every(([first]) => unfolded.has(first.group));
    const fold = byId("fold");
    fold.hidden = groups.length === 0;
    fold.querySelector("span").textContent = open ? "Fold near-duplicates" : "Unfold near-duplicates";
    fold.onclick = () => {
      for (const [first] of groups) unfolded[open ? "delete" : "add"](first.group);
      this.#drawTiles(answer, unfolded);
    };
    const hooks = { href: (each) => moves.searchOf(each.id), view: (each) => moves.show(each.id), told: notices.tell };
    const list = neighbours.length ? results.tiles(neighbours, unfolded, hooks) : nothing();
    byId("tiles").replaceChildren(list, ...further(answer, this.standing.current?.k?.most ?? 0));
  }
}

const busy = (on) => byId("results").setAttribute("aria-busy", String(on));

const nothing = () => make("p", { class: "nothing" }, "No picture of the library fits the folder and the distance asked for.");

function titleOf(answer) {
  const [first] = answer.pictures;
  const several = answer.pictures.length > 1 && `${answer.combine} of ${answer.pictures.length} pictures`;
  return several || words.basename(first?.name || "this one");
}

/** The button for twice as many neighbours, if there may be more. */
function further(answer, most) {
  const k = Math.min(most, answer.k * 2);
  if (answer.neighbours.length < answer.k || k <= answer.k) return [];
  return [button(`Show ${words.number(k)} instead of ${words.number(answer.k)}`, null, () => moves.set({ k }), { class: "more" })];
}
