/* The view of labels: asks, and draws the answer; without a picture, the labels of the model. */

import { classify } from "../search/query-request.js";
import * as details from "../pictures/answer-details.js";
import { button, byId } from "../kit/elements.js";
import * as labels from "./label-bars.js";
import * as moves from "../search/query-links.js";
import * as notices from "../kit/notices.js";
import { QuestionView } from "../search/question-view.js";
import * as service from "../kit/service-client.js";
import { classifying } from "../kit/service-status.js";
import * as words from "../kit/text-format.js";

const SLOWLY = ["Classifying", "Working out the labels."];

export class Classified extends QuestionView {
  heading = "#classes-title"; // what takes the focus
  tiles = null; // there are none
  pictures = []; // for the larger view, which it does not have
  #shown = null; // an answer, or the card of the model

  /** Whether another model is promoted than the one that has answered. */
  isOld(status) {
    const [shown, now] = [this.#shown?.commits, status.classify?.commits];
    return Boolean(shown && now) && shown.select !== now.select;
  }

  /** Shows the labels of a state's pictures. signal: ends what is under way. */
  async show(state, signal) {
    this.#shown = null;
    document.title = "Classify · lookalike";
    byId("origin").hidden = true;
    if (!state.pictures.length) return this.#showCard(signal);
    const ask = (waiting) => classify(state, { standing: this.standing, signal, sent: notices.sending, waiting });
    const { answer } = await this.answered(state, "Classify", () => notices.slowly(...SLOWLY, ask));
    this.#shown = answer;
    return this.#draw(state, answer);
  }

  async #showCard(signal) {
    const card = await notices.slowly(...SLOWLY, async (waiting) => {
      await this.standing.settled(signal, waiting, classifying);
      return service.patiently(() => service.classes(signal), { signal, waiting });
    });
    this.#shown = card;
    byId("classes-title").textContent = words.count(card.labels.length, "label");
    byId("classes-summary").textContent = "";
    byId("labels").replaceChildren(labels.card(card));
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
