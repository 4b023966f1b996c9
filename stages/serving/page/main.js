/* The page as a whole: its address decides which of the two views is shown, the answer to a question or the library. */

import * as address from "./address.js";
import { Answers } from "./answers.js";
import { arrived } from "./arrivals.js";
import * as browse from "./browse.js";
import { byId } from "./elements.js";
import * as failing from "./failing.js";
import { Folders } from "./folders.js";
import * as intake from "./intake.js";
import * as keyboard from "./keyboard.js";
import * as moves from "./moves.js";
import * as navigation from "./navigation.js";
import * as notices from "./notices.js";
import * as options from "./options.js";
import * as service from "./service.js";
import { Standing } from "./standing.js";
import { choose, chosen } from "./stored.js";
import * as uploads from "./uploads.js";
import * as viewer from "./viewer.js";
import * as words from "./words.js";

const SESSION = "signed-in";

const standing = new Standing();
const answers = new Answers(standing, () => chooser.choose(true));
const folders = new Folders(standing, fail);
const chooser = intake.connect(receive, () => moves.state().pictures.length > 0, notices.complain);

let view = folders;
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
  const asking = state.pictures.length > 0;
  document.body.classList.toggle("asking", asking);
  view = asking ? answers : folders;
  const { signal } = under;
  try {
    await view.show(state, signal);
  } catch (failure) {
    return fail(failure);
  }
  if (signal.aborted) return undefined;
  notices.clearNotice();
  showStanding();
  restore(back, first, asking);
  return showViewer(moves.state());
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

function showViewer(state) {
  if (!state.show) return viewer.close();
  const all = view.pictures;
  const place = all.findIndex((each) => each.id === state.show);
  if (place < 0) return moves.show(null, true); // not among what is shown
  return viewer.open(all[place], {
    href: moves.searchOf(state.show),
    add: state.pictures.length ? () => moves.add(state.show) : null,
    step: all.length > 1 ? (by) => all[place + by] && moves.show(all[place + by].id, true) : null,
    tracing: Boolean(standing.current?.trace),
    closed: () => (navigation.isOver() ? history.back() : moves.show(null, true)),
  });
}

/** Asks with what was dropped, pasted or chosen. add: together with the pictures of the question that is shown. */
async function receive(given, add) {
  byId("message").replaceChildren();
  const before = add ? moves.state().pictures : [];
  const pictures = await arrived(given, before, standing.current?.limits);
  if (pictures) moves.ask(pictures);
}

/** The banner if the service has a newer index or model than what is shown, and the line at the foot. */
function showStanding() {
  const { current } = standing;
  if (!current) return;
  const newer = (name) => view.commits && view.commits[name] !== current.commits[name];
  byId("newer").hidden = current.state !== "ready" || !(newer("index") || newer("model"));
  const parts = [words.count(current.pictures, "picture"), current.model?.name, `lookalike ${current.version}`];
  byId("standing").textContent = parts.filter(Boolean).join(" · ");
}

function renew() {
  byId("newer").hidden = true;
  answers.forget();
  folders.forget();
  shown = null;
  arrive(false);
}

/** Puts the page and the focus where they were before going on, or at the beginning of what is new. */
function restore(back, first, asking) {
  const { scroll, id } = back ? navigation.place() : { scroll: 0, id: null };
  // The other view may have a tile of the same picture, hidden.
  const left = id && byId(asking ? "tiles" : "browse").querySelector(`.tile[data-id="${CSS.escape(id)}"] a`);
  const lost = document.activeElement === document.body || !document.activeElement?.checkVisibility();
  if (left) left.focus({ preventScroll: true });
  else if (lost && !first) document.querySelector(asking ? "#title" : "#browse h2")?.focus({ preventScroll: true });
  scrollTo(0, scroll);
  if (left) left.scrollIntoView({ block: "nearest" }); // tiles that were not drawn yet have estimated heights
}

/** Folders below what was typed so far, to propose; null where they cannot be had. */
async function foldersLike(typed) {
  const parent = words.folderOf(typed);
  try {
    const page = await service.library(parent, null, 100);
    return page.folders.map(({ name }) => (parent ? `${parent}/${name}` : name));
  } catch {
    return null;
  }
}

/** Remembers that there is a session to sign out of; scripts do not see its cookie. */
function signed(on) {
  choose(SESSION, on);
  document.body.classList.toggle("signed", on);
}

async function signOut() {
  await service.signOut();
  signed(false);
  await uploads.forget();
  location.assign("/");
}

function turnDetails() {
  const panel = byId("details");
  panel.open = !panel.open;
  panel.querySelector("summary").focus();
}

function focusFilter() {
  byId("filters").open = true;
  byId("filter").focus();
}

document.body.classList.toggle("signed", chosen(SESSION));
byId("filters").open = matchMedia("(min-width: 761px)").matches;
byId("again").addEventListener("click", renew);
byId("signout").addEventListener("click", signOut);
options.connect(moves.set, foldersLike);
viewer.connect();
keyboard.connect({
  address: () => byId("address").focus(),
  choose: () => chooser.choose(false),
  filter: focusFilter,
  region: () => document.querySelector("#query .tools button:not([hidden])")?.click(),
  details: turnDetails,
  newQuestion: moves.home,
  add: (tile) => moves.add(tile.dataset.id),
  view: (tile) => moves.show(tile.dataset.id),
});
standing.addEventListener("change", showStanding);
navigation.connect(arrive);
standing.start();
arrive(true, true);
