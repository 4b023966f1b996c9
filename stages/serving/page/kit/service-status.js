/* The standing of the service: asks /status often while it starts and seldom while it is ready, and not at all while the
 * page is hidden. Knows nothing of questions. */

import { patiently, Refusal, status, Unreachable } from "./service-client.js";

const EVERY = { loading: 1, empty: 3, failed: 3, ready: 15 }; // seconds
const AWAY = 4; // seconds between attempts while the service does not answer

/** The part of the status that classifies: {state, message, …}; "unpromoted" where no model is promoted. */
export const classifying = (status) => status.classify ?? { state: "unpromoted", message: "" };

/** Whether a status names another index or model than these commits; undefined ones are of nothing. */
export const olderThan = ({ state, commits: now }, commits) =>
  state === "ready" && Boolean(commits && now) && (commits.index !== now.index || commits.model !== now.model);

export class Standing extends EventTarget {
  current = null; // the newest answer of /status
  failure = null; // why the newest attempt had none
  #timer = 0;
  #asked = 0;

  /** Begins to ask; every answer is a "change" event. */
  start() {
    document.addEventListener("visibilitychange", () => !document.hidden && this.refresh());
    addEventListener("online", () => this.refresh());
    return this.refresh();
  }

  /** Asks now. */
  async refresh() {
    clearTimeout(this.#timer);
    const mine = (this.#asked += 1);
    let current = this.current;
    let failure = null;
    try {
      current = await status();
    } catch (failed) {
      failure = failed;
    }
    if (mine !== this.#asked) return; // a later one is under way
    Object.assign(this, { current, failure });
    this.dispatchEvent(new Event("change"));
    if (!document.hidden) this.#timer = setTimeout(() => this.refresh(), this.#pause() * 1000);
  }

  #pause() {
    if (this.failure) return AWAY;
    const { state, classify } = this.current;
    return Math.min(EVERY[state] ?? AWAY, EVERY[classify?.state] ?? EVERY.ready);
  }

  /** Waits until the first attempt has ended, with an answer or without. */
  async known(signal) {
    if (!this.current && !this.failure) await this.#change(signal);
  }

  /** The status once the service can answer. waiting({kind, message}) is called with each reason to wait; kind is
   * "unreachable" or the state. part(status): the {state, message} that counts. Throws Refusal, such as for a page that
   * is not signed in. */
  async settled(signal, waiting, part = (status) => status) {
    while (true) {
      const counts = this.current && part(this.current);
      if (signal.aborted) throw new DOMException("stopped", "AbortError");
      if (this.failure instanceof Refusal && this.failure.status !== 503) throw this.failure;
      if (this.failure instanceof Unreachable) waiting({ kind: "unreachable", message: this.failure.message });
      else if (counts?.state === "ready") return this.current;
      else if (counts) waiting({ kind: counts.state, message: counts.message });
      await this.#change(signal);
    }
  }

  /** What ask() gives once the service can answer, and is not busy; see `settled`. */
  async answer(ask, { signal, waiting, part }) {
    await this.settled(signal, waiting, part);
    return patiently(ask, { signal, waiting });
  }

  #change(signal) {
    return new Promise((done) => {
      this.addEventListener("change", done, { once: true, signal });
      signal.addEventListener("abort", done, { once: true });
    });
  }
}
