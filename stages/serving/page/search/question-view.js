/* What the views of a question share: they keep the newest answers, so that going back is immediate, and show the pictures
 * that are asked about. */

import * as address from "../kit/address.js";
import * as query from "./query-pictures.js";

const KEPT = 50;

export class QuestionView {
  #kept = new Map(); // address -> {answer, unfolded: the groups of near-duplicates that are open}

  /** standing: a Standing. choose(): lets the user choose a picture to add. */
  constructor(standing, choose) {
    this.standing = standing;
    this.choose = choose;
  }

  forget() {
    this.#kept.clear();
  }

  /** What is kept of a state, with its answer, which ask() gives if there is none yet. verb: "Search" or "Classify". */
  async answered(state, verb, ask) {
    const key = address.write({ ...state, show: null });
    let kept = this.#kept.get(key);
    await this.#showQuery(state, verb, kept?.answer);
    if (!kept) {
      kept = { answer: await ask(), unfolded: new Set() };
      this.#kept.set(key, kept);
      if (this.#kept.size > KEPT) this.#kept.delete(this.#kept.keys().next().value);
      await this.#showQuery(state, verb, kept.answer);
    }
    return kept;
  }

  #showQuery(state, verb, answer) {
    const { text: worded, model } = this.standing.current ?? {};
    return query.show(state, answer, { verb, worded, fit: model?.fit, choose: this.choose });
  }
}
