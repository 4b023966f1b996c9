/* Facets as elements: values with counts to tick, and histograms of dates and numbers to choose a range in. Knows neither
 * the service nor the address; choose(column, clause or null) is called with what is chosen. */

import { make } from "../kit/elements.js";
import * as words from "../kit/text-format.js";

const SHOWN = 6; // values before the others are folded

/** Columns that tell one file from all others: nobody filters by their values. */
export const UNSHOWN = new Set(["id", "path", "name", "sha256", "encoder", "pixels", "latitude", "longitude", "anywhere"]);

const END_OF_DAY = " 23:59:59";

/** A facet: {name, type, values or bars, more, missing}. clause: what is chosen in it, or undefined. */
export function facet(found, clause, choose) {
  const scale = words.scale(found.name);
  const body = found.bars ? histogram(found, clause, choose) : values(found, clause, choose);
  return make("fieldset", { class: "facet", "data-column": found.name }, make("legend", {}, words.title(found.name)), scale && make("p", { class: "count" }, scale), body);
}

function values({ name, values: listed, more, missing }, clause, choose) {
  const chosen = clause?.unknown ? [null] : (clause?.values ?? []);
  const known = listed.map(({ value }) => value);
  const gone = chosen.filter((each) => each !== null && !known.includes(each)).map((value) => ({ value, pictures: 0 }));
  const all = [...listed, ...gone, ...(missing || chosen[0] === null ? [{ value: null, pictures: missing }] : [])];
  const largest = Math.max(1, ...all.map(({ pictures }) => pictures));
  const turn = (value, on) => {
    const rest = on ? [...chosen.filter((each) => each !== null), value] : chosen.filter((each) => each !== value);
    choose(name, value === null ? (on ? { column: name, unknown: true } : null) : rest.length ? { column: name, values: rest } : null);
  };
  const lines = all.map(({ value, pictures }) => {
    const box = make("input", { type: "checkbox", checked: chosen.includes(value), on: { change: (event) => turn(value, event.target.checked) } });
    const swatch = name === "colour" && value && make("i", { class: "swatch" });
    if (swatch) swatch.style.background = value; // the names of CSS
    const text = make("bdi", { title: String(value ?? "") }, words.shown(name, value));
    const label = make("label", { class: "check" }, box, swatch, text, make("span", { class: "count" }, words.number(pictures)));
    const line = make("li", {}, label);
    line.style.setProperty("--share", pictures / largest);
    return line;
  });
  const list = (some) => make("ul", { class: "values" }, some);
  const folded = lines.filter((_, place) => lines.length > SHOWN + 1 && place >= SHOWN && !chosen.includes(all[place].value));
  const further = folded.length > 0 && make("details", {}, make("summary", {}, `${folded.length} more`), list(folded));
  const others = more > 0 && make("p", { class: "count" }, `and ${words.count(more, "further value")}; search for them at the top`);
  return [list(lines.filter((each) => !folded.includes(each))), further, others];
}

function histogram({ name, type, bars, missing }, clause, choose) {
  const dates = type === "date";
  const largest = Math.max(1, ...bars.map(({ pictures }) => pictures));
  const day = (text) => text?.slice(0, 10) ?? null;
  const before = (one, other) => one === null || other === null || one <= other;
  const inside = ({ from, to }) => {
    if (clause?.from === undefined) return false;
    if (dates) return before(day(clause.from), day(to)) && before(day(from), day(clause.to));
    return before(clause.from, (from + to) / 2) && before((from + to) / 2, clause.to); // ranges of numbers touch
  };
  const range = (from, to) => choose(name, from == null && to == null ? null : { column: name, from, to: dates && to != null ? day(to) + END_OF_DAY : to });
  const between = (one, other) => range(bars[Math.min(one, other)].from, bars[Math.max(one, other)].to);
  let begun = null;
  const list = make("div", { class: "bars", role: "group", "aria-label": `${words.title(name)}: choose a bar with the arrow keys, or drag over several` });
  bars.forEach((bar, place) => {
    const said = `${span(name, bar.from, bar.to)}: ${words.count(bar.pictures, "picture")}`;
    const pressed = { type: "button", title: said, "aria-label": said, "aria-pressed": String(Boolean(inside(bar))) };
    const one = make("button", pressed);
    one.style.setProperty("--share", bar.pictures / largest);
    one.addEventListener("pointerdown", (event) => {
      begun = place;
      one.releasePointerCapture(event.pointerId);
    });
    one.addEventListener("pointerup", () => begun !== null && between(begun, place));
    one.addEventListener("click", (event) => event.detail === 0 && between(event.shiftKey && begun !== null ? begun : (begun = place), place));
    list.append(one);
  });
  const stop = (one) => [...list.children].forEach((each) => (each.tabIndex = each === one ? 0 : -1)); // one stop of Tab
  stop(list.querySelector('[aria-pressed="true"]') ?? list.firstElementChild);
  list.addEventListener("focusin", (event) => stop(event.target));
  list.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) list.children[[...list.children].indexOf(event.target) + by]?.focus();
  });
  const held = { from: clause?.from ?? null, to: clause?.to ?? null };
  const field = (end, label) => {
    const value = held[end] === null ? "" : dates ? day(held[end]) : Number(held[end].toPrecision(5));
    const input = make("input", { type: dates ? "date" : "number", step: "any", value, "aria-label": `${words.title(name)}: ${label}`, title: label });
    let applied = input.value;
    const apply = () => {
      if ("typing" in input.dataset || input.value === applied) return;
      applied = input.value;
      held[end] = input.value === "" ? null : dates ? input.value : Number(input.value);
      range(held.from, held.to);
    };
    // A date changes with each digit of its year: one that is typed counts when it is left, or with Enter.
    // Tab goes from part to part of a date, and types nothing.
    input.addEventListener("keydown", ({ key }) => key !== "Tab" && (input.toggleAttribute("data-typing", key !== "Enter"), apply()));
    input.addEventListener("change", apply);
    input.addEventListener("blur", () => (input.removeAttribute("data-typing"), apply()));
    return input;
  };
  const first = bars[0]?.from, last = bars.at(-1)?.to;
  const ends = make("p", { class: "ends count" }, make("span", {}, shown(name, first)), make("span", {}, shown(name, last)));
  const unknown = values({ name, values: [], more: 0, missing }, clause?.unknown ? clause : undefined, choose);
  return [list, ends, make("div", { class: "range" }, field("from", "from"), "–", field("to", "to")), ...(missing || clause?.unknown ? unknown : [])];
}

const shown = (name, value) => (typeof value === "string" ? value.slice(0, 10) : words.shown(name, value));

/** "2019-03-01 – 2019-03-31" */
export function span(name, from, to) {
  if (from == null || to == null) return from == null ? `up to ${shown(name, to)}` : `from ${shown(name, from)}`;
  const [first, last] = [shown(name, from), shown(name, to)];
  return first === last ? first : `${first} – ${last}`;
}
