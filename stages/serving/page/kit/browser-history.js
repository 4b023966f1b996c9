/* The entries of the browser's history: the address of each, its place on the page, and the tile that was left from it.
 * Knows no pictures; arrived(back) is called whenever another address is shown. */

const PLACES = "places";

let current = null; // the key of the entry that is shown
let arrive = () => {};

export function connect(arrived) {
  arrive = arrived;
  history.scrollRestoration = "manual"; // pictures come after the page; the place is restored when they are there
  current = history.state?.key ?? mark();
  addEventListener("popstate", () => {
    keep();
    current = history.state?.key ?? mark();
    arrive(true);
  });
  addEventListener("pagehide", keep);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-search]");
    if (!link?.href || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(new URL(link.href).search);
  });
}

/** Shows another address. replace: in place of the current entry. over: as a dialog over the page, which stays. */
export function go(search, { replace = false, over = false } = {}) {
  keep();
  const address = `${location.pathname}${search}`;
  const key = replace ? current : newKey();
  const state = { key, over: replace ? Boolean(history.state?.over) : over };
  history[replace ? "replaceState" : "pushState"](state, "", address);
  current = key;
  arrive(false);
}

/** Whether the entry is a dialog opened from the entry before it. */
export const isOver = () => Boolean(history.state?.over);

/** The place to return to: {scroll, id of the tile that had the focus}. */
export const place = () => places()[current] ?? { scroll: 0, id: null };

function keep() {
  const id = document.activeElement?.closest?.("[data-id]")?.dataset.id ?? null;
  const all = places();
  all[current] = { scroll: scrollY, id };
  const newest = Object.entries(all).slice(-100);
  try {
    sessionStorage.setItem(PLACES, JSON.stringify(Object.fromEntries(newest)));
  } catch {
    // No storage for this page: it starts at its top.
  }
}

function places() {
  try {
    return JSON.parse(sessionStorage.getItem(PLACES)) ?? {};
  } catch {
    return {};
  }
}

function mark() {
  const key = newKey();
  history.replaceState({ key }, "");
  return key;
}

const newKey = () => `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
