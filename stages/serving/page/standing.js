/* The standing of the service: asks /status often while it starts and seldom while it is ready, and not at all while the
 * page is hidden. Knows nothing of questions. */

import { Refusal, status, Unreachable } from "./service.js";

const EVERY = { loading: 1, empty: 3, failed: 3, ready: 15 }; // seconds
const AWAY = 4; // seconds between attempts while the service does not answer

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
    return this.failure ? AWAY : (EVERY[this.current.state] ?? AWAY);
  }

  /** The status once the service can answer. waiting({kind, message}) is called with each reason to wait; kind is
   * "unreachable" or the state. Throws Refusal, such as for a page that is not signed in. */
  async settled(signal, waiting) {
    while (true) {
      if (signal.aborted) throw new DOMException("stopped", "AbortError");
      if (this.failure instanceof Refusal && this.failure.status !== 503) throw this.failure;
      if (this.failure instanceof Unreachable) waiting({ kind: "unreachable", message: this.failure.message });
      else if (this.current?.state === "ready") return this.current;
      else if (this.current) waiting({ kind: this.current.state, message: this.current.message });
      await this.#change(signal);
    }
  }

  #change(signal) {
    return new Promise((done) => {
      const end = () => {
        this.removeEventListener("change", end);
        signal.removeEventListener("abort", end);
        done();
      };
      this.addEventListener("change", end);
      signal.addEventListener("abort", end);
    });
  }
}
