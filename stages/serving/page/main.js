/* The page as a whole: its address decides which of the views is shown: the answer to a question, the library, groups of
 * copies, or the labels of pictures; a service that does not search has the last alone. */

import * as address from "./kit/address.js";
import { Answers } from "./search/search-view.js";
import * as browse from "./library/folder-grid.js";
import { Classified } from "./classify/classify-view.js";
import { Copies } from "./copies/copies-view.js";
import { byId } from "./kit/elements.js";
import * as failing from "./failure-notices.js";
import * as filters from "./filters/filter-panel.js";
import { Folders } from "./library/library-view.js";
import * as intake from "./pictures/picture-input.js";
import * as labelling from "./labels/label-dialog.js";
import * as keyboard from "./kit/keyboard.js";
import { MapView } from "./map/map-view.js";
import * as moves from "./kit/query-links.js";
import * as navigation from "./kit/browser-history.js";
import * as notices from "./kit/notices.js";
import * as options from "./search/query-options.js";
import * as suggestions from "./search/search-suggestions.js";
import * as service from "./kit/service-client.js";
import { Standing } from "./kit/service-status.js";
import { choose, chosen } from "./kit/preferences.js";
import * as uploads from "./pictures/upload-store.js";
import * as selecting from "./pictures/selection-bar.js";
import { turn } from "./pictures/picture-tile.js";
import { selection } from "./kit/selection.js";
import * as viewer from "./pictures/picture-viewer.js";
import * as words from "./kit/text-format.js";

const SESSION = "signed-in";

const standing = new Standing();
const answers = new Answers(standing, () => chooser.choose(true));
const folders = new Folders(standing, fail);
const classified = new Classified(standing, () => chooser.choose(true));
const copies = new Copies(standing);
const atlas = new MapView(standing);
const hasLibrary = () => standing.current?.search !== false;
const bar = suggestions.connect(hasLibrary, () => hasWords());
const hasWords = () => Boolean(standing.current?.text);
const named = (text) => hasLibrary() && !suggestions.isAddress(text) && (worded(text), true);
const chooser = intake.connect(standing, named);

let view = folders;
let viewed = false; // whether the view is that of an address
let shown = null; // the address that is shown, without the larger view
let under = new AbortController(); // what is under way

/** Shows what the address says. back: by the browser's buttons, so the place on the page is restored. first: with the page
 * itself, whose reader begins at its beginning. */
async function arrive(back, first = false) {
  const state = moves.state();
  const base = address.write({ ...state, show: null });
  if (base === shown) return showViewer(state);
  under.abort();
  under = new AbortController();
  shown = base;
  viewer.close();
  browse.leave();
  byId("message").replaceChildren();
  notices.clearNotice();
  const { signal } = under;
  await standing.known(signal);
  if (signal.aborted) return undefined;
  view = viewOf(state);
  viewed = true;
  document.body.classList.toggle("asking", address.asks(state));
  document.body.classList.toggle("inside", Boolean(state.folder) || address.isList(state));
  showView();
  const filtered = [answers, folders, atlas].includes(view);
  byId("refine").hidden = !filtered;
  if (filtered) filters.begin(state);
  else byId("chips").hidden = true;
  try {
    await view.show(state, signal);
  } catch (failure) {
    if (failure.code === "bad-filter" && state.where) filters.refused(words.sentence(failure.message));
    return askedWithout(failure, state) || fail(failure);
  }
  if (filtered) filters.show(state, signal).catch(panelFailed);
  if (signal.aborted) return undefined;
  notices.clearNotice();
  chosenBar.draw();
  showStanding();
  restore(back, first);
  return showViewer(moves.state());
}

function viewOf(state) {
  if (state.view === address.CLASSIFY || standing.current?.search === false) return classified;
  if (state.view === address.COPIES) return copies;
  if (state.view === address.MAP) return atlas;
  return address.asks(state) ? answers : folders;
}

/** What the page says of its view, outside of it. */
function showView() {
  const classifies = view === classified;
  document.body.classList.toggle("classifying", classifies);
  document.body.classList.toggle("copies", view === copies);
  document.body.classList.toggle("mapping", view === atlas);
  byId("hero-title").textContent = classifies ? "See what a picture shows" : "Find similar pictures";
  byId("hero-more").hidden = classifies;
  byId("drop-words").textContent = classifies ? "Classify this" : "Search with this";
  byId("newer-words").textContent = classifies
    ? "Another model has been promoted since."
    : "The library has changed since these pictures were found.";
  for (const [id, on, href] of [
    ["view-search", [answers, folders].includes(view), moves.viewOf("")],
    ["view-classify", classifies, moves.viewOf(address.CLASSIFY)],
    ["view-map", view === atlas, moves.viewOf(address.MAP)],
    ["view-copies", view === copies, address.copies({})],
  ]) {
    const link = byId(id);
    link.href = href;
    if (on) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Asks again without the pictures that are the reason of a failure, and names them; false if no other is left. */
function askedWithout({ pictures: bad = [] }, { pictures }) {
  const rest = pictures.filter((_, place) => bad.every(({ picture }) => picture !== place));
  if (!bad.length || !rest.length) return false;
  moves.change(rest, true);
  const reasons = bad.map(({ message }) => words.sentence(message)).join(" ");
  notices.complain(`Left out ${words.count(bad.length, "picture")}. ${reasons}`);
  return true;
}

function fail(failure) {
  if (failure.name !== "AbortError") shown = null; // the same address may be asked again
  failing.show(failure, {
    again: () => arrive(false),
    choose: () => chooser.choose(false),
    signedIn: async () => {
      signed(true);
      await standing.refresh();
      arrive(false);
    },
  });
}

/** The filters are beside the pictures: without them the page still shows these. */
function panelFailed(failure) {
  if (failure.name !== "AbortError") byId("matching").textContent = failure.message;
}

function showViewer(state) {
  if (!state.show) return viewer.close();
  const all = view.pictures;
  const place = all.findIndex((each) => each.id === state.show);
  if (place < 0) return moves.show(null, true); // not among what is shown
  return viewer.open(all[place], {
    asking: address.asks(state),
    step: (by) => step(place + by),
    place: `${words.number(place + 1)} of ${words.number(all.length)}${view.more ? "+" : ""}`,
    first: place === 0,
    last: place === all.length - 1 && !view.more,
    tracing: Boolean(standing.current?.trace),
    closed: () => (navigation.isOver() ? history.back() : moves.show(null, true)),
  });
}

/** Shows the picture at another place in the larger view, once it is loaded. */
async function step(place) {
  if (place === view.pictures.length) await view.more?.();
  const picture = view.pictures[place];
  if (picture) moves.show(picture.id, true);
}

/** Asks with words where the model knows them, and lists the names and values that hold them where it does not. */
function worded(text) {
  if (hasWords()) return bar.pick({ text });
  bar.pick({ where: suggestions.anywhere(text) });
  return notices.complain(
    `Only names and values were searched for “${text}”: the model has no text tower, so it does not find what pictures show.`,
  );
}

/** The ids of the pictures that are seen, without folded ones. */
function seen() {
  const tiles = view.tiles ? byId(view.tiles).querySelectorAll(".tile:not([hidden])") : [];
  return [...new Set([...tiles].map((each) => each.dataset.id))];
}

/** A filter in a folder is of that folder's paths. */
function narrowed(changed) {
  const { folder, filter } = moves.state();
  return "where" in changed && folder && !filter ? { filter: `${folder}/`, folder: "" } : {};
}

/** The banner if the service has a newer index or model than what is shown, the tabs, and the line at the foot. */
function showStanding() {
  const { current } = standing;
  if (!current) return;
  byId("newer").hidden = !view.isOld(current);
  byId("view-classify").hidden = !current.classify;
  byId("view-copies").hidden = !current.copies;
  const takesNone = current.state === "ready" && current.search !== false && !current.embeds && !current.classify;
  document.body.classList.toggle("library-only", takesNone);
  byId("hero-more").textContent = takesNone ? "Pick any picture in the library below." : "Or pick any picture in the library below.";
  const typed = takesNone ? "Type a name or value" : "Type a name or value, or paste a picture";
  byId("address").placeholder = current.text ? "Describe a picture, or type a name" : typed;
  byId("view-map").hidden = !current.map;
  byId("views").hidden = current.search === false || !(current.classify || current.copies || current.map);
  const { model } = current.classify ?? {};
  const parts = [
    current.search !== false && words.count(current.pictures, "picture"),
    current.model?.name,
    model && `${words.count(model.labels, "label")} of ${model.run}`,
    `lookalike ${current.version}`,
  ];
  byId("standing").textContent = parts.filter(Boolean).join(" · ");
}

function renew() {
  byId("newer").hidden = true;
  for (const each of [answers, folders, classified, copies, atlas]) each.forget();
  shown = null;
  arrive(false);
}

/** Puts the page and the focus where they were before going on, or at the beginning of what is new. */
function restore(back, first) {
  const { scroll, id } = back ? navigation.place() : { scroll: 0, id: null };
  // The other view may have a tile of the same picture, hidden.
  const left = id && view.tiles && byId(view.tiles).querySelector(`.tile[data-id="${CSS.escape(id)}"] a`);
  const lost = document.activeElement === document.body || !document.activeElement?.checkVisibility();
  if (left) left.focus({ preventScroll: true });
  else if (lost && !first) document.querySelector(view.heading)?.focus({ preventScroll: true });
  if (!back && byId("refine").contains(document.activeElement)) return; // who filters goes on there
  scrollTo(0, scroll);
  if (left) left.scrollIntoView({ block: "nearest" }); // tiles that were not drawn yet have estimated heights
}

/** Remembers that there is a session to sign out of; scripts do not see its cookie. */
function signed(on) {
  choose(SESSION, on);
  document.body.classList.toggle("signed", on);
}

/** Signs in with the token of the address that `lookalike serve --edit` prints, and takes it out of the address. */
async function enter() {
  const [, token] = /^#token=(.+)$/.exec(location.hash) ?? [];
  if (!token) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  try {
    await service.signIn(token);
    signed(true);
  } catch (failure) {
    notices.complain(failure.message);
  }
}

async function signOut() {
  await service.signOut();
  signed(false);
  await uploads.forget();
  location.assign("/");
}

function turnDetails() {
  const panel = byId(view === classified ? "origin" : "details");
  panel.open = !panel.open;
  panel.querySelector("summary").focus();
}

function focusFilter() {
  if (!document.body.classList.contains("asking")) {
    byId("facets-panel").open = true;
    return byId("facets-panel").querySelector("summary").focus();
  }
  byId("filters").open = true;
  return byId("filter").focus();
}

document.body.classList.toggle("signed", chosen(SESSION));
byId("filters").open = matchMedia("(min-width: 761px)").matches;
byId("again").addEventListener("click", renew);
byId("signout").addEventListener("click", signOut);
options.connect(moves.set);
filters.connect((changed) => moves.set(view === folders ? { ...changed, ...narrowed(changed) } : changed), panelFailed);
viewer.connect();
const chosenBar = selecting.connect(standing, seen);
labelling.connect(() => Boolean(standing.current?.edit));
keyboard.connect(
  {
    "/": () => byId("address").focus(),
    o: () => chooser.choose(false),
    f: focusFilter,
    r: () => document.querySelector("#query .tools button:not([hidden])")?.click(),
    d: turnDetails,
    n: moves.home,
    c: () => standing.current?.classify && moves.turn(view === classified ? "" : address.CLASSIFY),
    l: () => selection.size && byId("selection-label").click(),
  },
  { view: moves.show, add: moves.add, select: turn },
);
standing.addEventListener("change", () => {
  showStanding();
  if (viewed && standing.current && viewOf(moves.state()) !== view) {
    shown = null; // the first attempt at the status had no answer, and the service does not search
    arrive(false);
  }
});
navigation.connect(arrive);
await enter();
standing.start();
arrive(true, true);
