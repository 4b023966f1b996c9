/* What is ticked: the pictures of the page, by id, in whatever view they were ticked, or the files of one view. Knows
 * no elements; every change is a "change" event. */

export class Selection extends EventTarget {
  #held = new Map(); // key -> what its view knows of it
  #anchor = null; // the key that was turned last, where a range begins

  get size() {
    return this.#held.size;
  }

  get keys() {
    return [...this.#held.keys()];
  }

  get values() {
    return [...this.#held.values()];
  }

  has(key) {
    return this.#held.has(key);
  }

  /** Ticks a key, or unticks it. known: what is to be found in `values`. */
  turn(key, on = !this.has(key), known = null) {
    this.#anchor = key;
    this.#set([[key, known]], on);
  }

  /** Turns all from the key that was turned last to this one, in the order of `keys`, to the same. */
  turnRange(keys, key, on = !this.has(key)) {
    const [from, to] = [keys.indexOf(this.#anchor), keys.indexOf(key)].sort((a, b) => a - b);
    this.#set((from < 0 ? [key] : keys.slice(from, to + 1)).map((each) => [each, null]), on);
    this.#anchor = key;
  }

  /** Ticks these, too: a list of keys, or of [key, known]. */
  add(entries) {
    this.#set(entries.map((each) => (Array.isArray(each) ? each : [each, null])), true);
  }

  clear() {
    this.#anchor = null;
    this.#set([...this.#held], false);
  }

  #set(entries, on) {
    for (const [key, known] of entries) {
      if (on) this.#held.set(key, known);
      else this.#held.delete(key);
    }
    this.dispatchEvent(new Event("change"));
  }
}

/** The ticked pictures of the library, by id. */
export const selection = new Selection();
