/* The options of a question: folder or glob, number of results, largest distance, metric. Does not know
 * the service: changed(options) is called with what was set. */

import { options, UNSET } from "../kit/address.js";
import { byId, make } from "../kit/elements.js";
import { number } from "../kit/text-format.js";

const CHOICES = [6, 12, 24, 48, 96, 200, 500, 1000];

let shown = UNSET; // the state that is shown
let defaults = { k: null, metric: null };

/** Connects the form. */
export function connect(changed) {
  const form = byId("options");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    changed(set());
  });
  form.addEventListener("change", () => form.reportValidity() && changed(set()));
  form.addEventListener("reset", (event) => {
    event.preventDefault(); // the fields' defaults are the service's
    changed({ ...UNSET, where: shown.where }); // which has its own
  });
}

/** Shows the options of a state. status: the service's, null while it is not known. */
export function show(state, status) {
  shown = state;
  defaults = { k: status?.k?.default ?? null, metric: status?.metric ?? null };
  const k = state.k ?? defaults.k;
  const most = status?.k?.most ?? Infinity;
  const choices = [...new Set([...CHOICES, k].filter((each) => each && each <= most))].sort((a, b) => a - b);
  byId("k").replaceChildren(...choices.map((each) => make("option", { value: each }, number(each))));
  const metrics = [...new Set([...(status?.metrics ?? []), state.metric])].filter(Boolean);
  byId("metric").closest("label").hidden = metrics.length < 2; // one order, whichever is chosen
  byId("metric").replaceChildren(...metrics.map((each) => make("option", { value: each }, each)));
  byId("k").value = k ?? "";
  byId("metric").value = state.metric ?? defaults.metric ?? metrics[0] ?? "";
  byId("filter").value = state.filter ?? "";
  byId("most").value = state.max_distance ?? "";
  byId("options").querySelector("[type=reset]").hidden = !Object.keys(options({ ...state, where: null })).length;
}

/** What the form says; an option at its default is null, so that the address names only those that were set. */
function set() {
  const most = byId("most").value;
  const k = Number(byId("k").value);
  const metric = byId("metric").value;
  return {
    filter: byId("filter").value.trim() || null,
    k: k && k !== defaults.k ? k : null,
    metric: metric && metric !== defaults.metric ? metric : null,
    max_distance: most === "" ? null : Number(most),
  };
}
