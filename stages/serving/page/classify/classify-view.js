/* The view of labels: asks, keeps the newest answers so that going back is immediate, and draws them; without a picture,
 * the labels of the model. */

import * as address from "../kit/address.js";
import { classify } from "../search/query-request.js";
import * as details from "../pictures/answer-details.js";
import { button, byId } from "../kit/elements.js";
import { lookUp } from "../pictures/picture-lookup.js";
import * as labels from "./label-bars.js";
import * as moves from "../search/query-links.js";
import * as notices from "../kit/notices.js";
import * as query from "../search/query-pictures.js";
import * as service from "../kit/service-client.js";
import { classifying } from "../kit/service-status.js";
import * as words from "../kit/text-format.js";

const KEPT = 50;
const SLOW = 400; // milliseconds after which the page says that it works

export class Classified {
  heading = "#classes-title"; // what takes the focus
  tiles = null; // there are none
  pictures = []; // for the larger view, which it does not have
  #kept = new Map(); // address -> answer
  #shown = null; // an answer, or the card of the model

  /** standing: a Standing. choose(): lets the user choose a picture to add. */
  constructor(standing, choose) {
    this.standing = standing;
    this.choose = choose;
  }

  /** Whether another model is promoted than the one that has answered. */
  isOld(status) {
    const [shown, now] = [this.#shown?.commits, status.classify?.commits];
    return Boolean(shown && now) && shown.select !== now.select;
  }

  forget() {
    this.#kept.clear();
  }

  /** Shows the labels of a state's pictures. signal: ends what is under way. */
  async show(state, signal) {
    this.#shown = null;
    document.title = "Classify · lookalike";
    byId("origin").hidden = true;
    if (!state.pictures.length) return this.#showCard(signal);
    const key = address.write({ ...state, show: null });
    let answer = this.#kept.get(key);
    await this.#showQuery(state, answer);
    if (!answer) {
      answer = await this.#waited(signal, (work) => classify(state, work));
      this.#keep(key, answer);
      await this.#showQuery(state, answer);
    }
    this.#shown = answer;
    return this.#draw(state, answer);
  }

  #keep(key, answer) {
    this.#kept.set(key, answer);
    if (this.#kept.size > KEPT) this.#kept.delete(this.#kept.keys().next().value);
  }

  async #showCard(signal) {
    const card = await this.#waited(signal, async ({ waiting }) => {
      await this.standing.settled(signal, waiting, classifying);
      return service.patiently(() => service.classes(signal), { signal, waiting });
    });
    this.#shown = card;
    byId("classes-title").textContent = words.count(card.labels.length, "label");
    byId("classes-summary").textContent = "";
    byId("labels").replaceChildren(labels.card(card));
  }

  /** Runs what asks; says so if it takes long. */
  async #waited(signal, run) {
    const slow = setTimeout(() => notices.notice("wait", "Classifying", "The labels are on their way."), SLOW);
    try {
      return await run({
        standing: this.standing,
        signal,
        sent: (part) => part < 1 && notices.notice("wait", "Sending", words.share(part), { share: part }),
        waiting: (reason) => {
          clearTimeout(slow);
          notices.waiting(reason);
        },
      });
    } finally {
      clearTimeout(slow);
    }
  }

  async #showQuery(state, answer) {
    const fit = this.standing.current?.model?.fit;
    const known = await Promise.all(state.pictures.map((each, place) => lookUp(each, answer?.pictures[place], fit)));
    query.show(state.pictures, known, null, {
      verb: "Classify",
      draw: (place, box) => moves.ask(state.pictures.map((each, at) => (at === place ? { ...each, box } : each))),
      remove: (place) => moves.ask(state.pictures.filter((_, at) => at !== place)),
      add: this.choose,
    });
  }

  #draw(state, answer) {
    const names = answer.pictures.map((each) => words.basename(each.name || "this picture"));
    const [first] = answer.pictures[0].labels;
    const several = answer.pictures.length > 1;
    const title = several ? words.count(answer.pictures.length, "picture") : first.label;
    document.title = `${title} · lookalike`;
    byId("classes-title").textContent = title;
    byId("classes-summary").textContent = `${answer.model.run} · ${words.seconds(details.time(answer))}`;
    byId("labels").replaceChildren(labels.bars(answer.pictures, names), ...further(state, answer));
    byId("origin").hidden = false;
    details.showLabels(answer);
    const said = answer.pictures.map(({ labels: [{ label, probability }] }, place) =>
      `${several ? `${names[place]}: ` : ""}${label}, ${words.likely(probability)}`);
    notices.tell(`${said.join("; ")}.`);
  }
}

/** The button for all labels of the model, if it has more, and the one for fewer. */
function further({ top }, answer) {
  const { labels: all } = answer.model;
  const most = Math.min(all, 1000);
  if (answer.top < most) return [button(`Show ${words.count(most, "label")}`, null, () => moves.set({ top: most }), { class: "plain" })];
  return top ? [button("Show fewer labels", null, () => moves.set({ top: null }), { class: "plain" })] : [];
}
