/* The view of labels: asks, and draws the answer, labels with their probabilities as bars; without a picture, what is known of
 * the model that gives them. */

import { classify } from "../search/query-request.js";
import * as details from "../pictures/answer-details.js";
import { button, byId, make } from "../kit/elements.js";
import * as moves from "../kit/query-links.js";
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
    const ask = (waiting) => this.standing.answer(() => service.classes(signal), { signal, waiting, part: classifying });
    const card = await notices.slowly(...SLOWLY, ask);
    this.#shown = card;
    byId("classes-title").textContent = words.count(card.labels.length, "label");
    byId("classes-summary").textContent = "";
    byId("labels").replaceChildren(cardOf(card));
  }

  #draw(state, answer) {
    const names = answer.pictures.map((each) => words.basename(each.name || "this picture"));
    const [first] = answer.pictures[0].labels;
    const several = answer.pictures.length > 1;
    const title = several ? words.count(answer.pictures.length, "picture") : first.label;
    document.title = `${title} · lookalike`;
    byId("classes-title").textContent = title;
    byId("classes-summary").textContent = `${answer.model.run} · ${words.seconds(details.time(answer))}`;
    byId("labels").replaceChildren(bars(answer.pictures, names), ...further(state, answer));
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

/** The labels of pictures. names: of the pictures, shown where there are several. */
function bars(pictures, names) {
  const several = pictures.length > 1;
  const parts = pictures.map(({ labels }, place) =>
    make(
      "section",
      { "aria-label": `Labels of ${names[place]}` },
      several && make("h2", {}, make("bdi", {}, names[place])),
      make("ol", { class: "labels" }, labels.map(bar)),
    ),
  );
  return make("div", { class: "classified" }, parts);
}

function bar({ label, probability }) {
  const shown = make("div", { class: "share", "aria-hidden": "true" });
  shown.style.setProperty("--share", String(probability));
  return make("li", {}, make("bdi", {}, label), make("span", { class: "count" }, words.likely(probability)), shown);
}

/** The card of a model: its labels, and the share of pictures that it labels rightly. */
function cardOf({ labels, model, cross_validation: crossed, held_out: held }) {
  const measured = [crossed && score(crossed, "in cross-validation"), held && score(held, "held out")];
  return make(
    "div",
    { class: "card" },
    make("ul", { class: "chips", "aria-label": "Labels" }, labels.map((each) => make("li", {}, make("bdi", {}, each)))),
    measured.filter(Boolean).map((text) => make("p", { class: "facts" }, text)),
    make("p", { class: "facts" }, `Run: ${model.run}, on ${model.takes} of ${model.backbone.described}`),
  );
}

const score = ({ right, of, accuracy, low, high }, how) =>
  `${words.likely(accuracy)} right: ${words.number(right)} of ${words.count(of, "picture")} ${how}, 95 % interval ${words.likely(low)} to ${words.likely(high)}`;
