/* The filters beside the pictures: facets with counts, the map, the text of the filter, and chips of what is filtered. */

import * as facets from "./facet-list.js";
import { map } from "./place-map.js";
import * as clauses from "./where-clauses.js";
import { button, byId, make } from "../kit/elements.js";
import { tell } from "../kit/notices.js";
import { choose, chosen } from "../kit/preferences.js";
import * as service from "../kit/service-client.js";
import * as words from "../kit/text-format.js";

const MAP = "map-shown";
const ORDER = ["taken", "camera", "folder", "label", "format", "colour"]; // those first, others as the service has them
const MOSTLY = 0.95; // a facet of which so many pictures have nothing is not shown unless it is asked for

let change = () => {}; // (options) => void
let shown = null; // the state that is shown
let failed = () => {};
let located = { index: "", any: false }; // whether any picture of an index has a place

/** Connects the panel's own controls, once. changed(options): goes to the state with these. */
export function connect(changed, fail) {
  change = changed;
  failed = fail;
  byId("where-form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(byId("where").value.trim());
  });
  byId("add-facet").addEventListener("change", (event) => change({ columns: [...listOf(shown.columns), event.target.value].join(",") }));
  byId("places").addEventListener("toggle", () => {
    choose(MAP, byId("places").open);
    if (shown) showPlaces(shown, new AbortController().signal).catch(failed);
  });
  byId("places").open = chosen(MAP);
  byId("show-found").addEventListener("click", () => {
    byId("facets-panel").open = false;
    byId("main").focus();
    scrollTo(0, 0);
  });
  byId("facets-panel").open = matchMedia("(min-width: 761px)").matches;
}

const listOf = (columns) => (columns ?? "").split(",").filter(Boolean);
const query = ({ where, filter, folder }) => ({ where: where ?? "", filter: filter ?? (folder ? `${folder}/` : "") });

/** Shows what is filtered in a state, before anything is counted. */
export function begin(state) {
  shown = state;
  byId("where").value = state.where ?? "";
  refused("");
  showChips(state, clauses.read(state.where));
}

/** Shows the facets of a state. signal: ends what is under way. */
export async function show(state, signal) {
  const current = clauses.read(state.where);
  const whole = await service.facets(query(state), signal);
  // What is chosen in a column does not hide the column's other values.
  const own = new Set([...current.map(({ column }) => column).filter(Boolean), ...listOf(state.columns)]);
  const known = new Set(whole.columns.map(({ name }) => name));
  const asked = [...own].filter((name) => known.has(name));
  const others = await Promise.all(
    asked.map((name) => service.facets({ ...query(state), where: clauses.write(clauses.replaced(current, name)), columns: name }, signal)),
  );
  const extra = others.flatMap((each) => each.facets);
  const telling = (each) => each.missing < MOSTLY * whole.matching && (each.bars ? each.bars.length > 1 : each.values.length + Boolean(each.missing) > 1);
  const found = [...whole.facets.filter((each) => !own.has(each.name) && telling(each)), ...extra];
  const order = [...ORDER, ...known];
  found.sort((one, other) => order.indexOf(one.name) - order.indexOf(other.name));
  sayMatching(whole);
  drawFacets(found, current, whole.columns);
  if (located.index !== whole.commits.index) {
    const [facet] = known.has("latitude") ? (await service.facets({ columns: "latitude" }, signal)).facets : [];
    located = { index: whole.commits.index, any: Boolean(facet?.bars.length) };
  }
  byId("places").hidden = !located.any;
  await showPlaces(state, signal);
}

function sayMatching({ pictures, matching }) {
  const said = matching === pictures ? words.count(pictures, "picture") : `${words.number(matching)} of ${words.count(pictures, "picture")}`;
  byId("matching").textContent = said;
  if (matching !== pictures) tell(`${said} match the filter.`);
}

function drawFacets(found, current, columns) {
  const typed = byId("facets").querySelector("[data-typing]");
  if (typed) return typed.addEventListener("blur", () => drawFacets(found, current, columns), { once: true });
  const focused = document.activeElement?.closest?.("#facets")?.contains(document.activeElement) && marked(document.activeElement);
  const set = (column, clause) => change({ where: clauses.write(clauses.replaced(clauses.read(shown.where), column, ...(clause ? [clause] : []))) || null });
  byId("facets").replaceChildren(...found.map((each) => facets.facet(each, current.find(({ column }) => column === each.name), set)));
  if (focused) [...byId("facets").querySelectorAll("input, button")].find((each) => marked(each) === focused)?.focus();
  const more = columns.filter(({ name }) => !facets.UNSHOWN.has(name) && !found.some((each) => each.name === name));
  byId("add-facet").closest("label").hidden = !more.length;
  byId("add-facet").replaceChildren(make("option", { value: "" }, "Choose…"), ...more.map(({ name }) => make("option", { value: name }, words.title(name))));
}

/** What a control of the facets is, to find it again when they are drawn anew. */
const marked = (element) => `${element.closest("[data-column]")?.dataset.column} ${element.getAttribute("aria-label") ?? element.parentElement.querySelector("bdi")?.textContent}`;

async function showPlaces(state, signal) {
  if (byId("places").hidden || !byId("places").open) return;
  const { places } = await service.places(query(state), signal);
  const current = clauses.read(state.where).filter((each) => !each.place);
  const set = (box) => change({ where: clauses.write([...current, { place: box }]) });
  byId("map").replaceChildren(places.length ? map(places, set) : make("p", { class: "count" }, "None of these pictures says where it was taken."));
}

/** Takes a filter that a person wrote, if the service can use it; otherwise says why not. */
async function attempt(where) {
  try {
    await service.facets({ ...query(shown), where, columns: "folder" });
  } catch (failure) {
    if (failure.status !== 400) return failed(failure);
    refused(words.sentence(failure.message));
    return byId("where").focus();
  }
  return change({ where: where || null });
}

/** Says at the filter's text why the service cannot use it; "" if it can. */
export function refused(reason) {
  byId("where-problem").textContent = reason;
  byId("where").setAttribute("aria-invalid", String(Boolean(reason)));
  if (reason) byId("facets-panel").open = byId("where-details").open = true;
}

function showChips(state, current) {
  const rest = (clause) => () => change({ where: clauses.write(current.filter((each) => each !== clause)) || null });
  const chips = current.map((each) => chip(said(each), rest(each)));
  if (state.filter) chips.unshift(chip([`Path: ${state.filter}`], () => change({ filter: null })));
  if (chips.length > 1) chips.push(make("li", { class: "all" }, button("Clear all", null, () => change({ where: null, filter: null }), { class: "plain" })));
  byId("chips").replaceChildren(...chips);
  byId("chips").hidden = !chips.length;
}

const chip = (text, remove) =>
  make("li", {}, make("bdi", {}, text), button(`Remove the filter ${text}`, "close", remove, { quiet: true, title: "Remove this filter" }));

/** A clause in words. */
function said({ column, values, unknown, from, to, name, anywhere, place: box, text }) {
  if (text) return text;
  if (anywhere !== undefined) return `Contains “${anywhere}”`;
  if (name !== undefined) return `Name contains “${name}”`;
  if (box) return `Place: ${words.degrees(box.south, "NS")} to ${words.degrees(box.north, "NS")}, ${words.degrees(box.west, "EW")} to ${words.degrees(box.east, "EW")}`;
  return `${words.title(column)}: ${unknown ? words.shown(column, null) : values ? values.map((each) => words.shown(column, each)).join(" or ") : facets.span(column, from, to)}`;
}
