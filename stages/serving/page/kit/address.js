/* The page's state, as the address of the page has it: ?upload=3f…&box=0.1,0.2,0.6,0.9&id=9c…&combine=all&k=24, or
 * ?text=red%20bicycle&without=snow, or ?view=classify&upload=3f…&top=10, ?view=copies&kind=near&after=50, or ?view=map
 *
 * Pictures keep their order; a box belongs to the picture before it. Knows neither the service nor the page.
 */

/** The kinds of pictures in a question: of the library, by web address, or given here and kept in this browser. */
export const KINDS = ["id", "url", "upload"];

export const CLASSIFY = "classify";
export const COPIES = "copies";
export const MAP = "map";

const text = (value) => value || null;

/** The options of a question beside its pictures: how each is read. They have the service's names, and null where they
 * are not set. */
const OPTIONS = {
  k: (value) => positive(value, Number.isSafeInteger),
  metric: text,
  filter: text,
  max_distance: (value) => positive(value, Number.isFinite, 0),
  where: text,
};

/** Those that pictures are listed by without a question, too. */
const OF_LISTS = ["filter", "where"];

export const UNSET = Object.freeze(Object.fromEntries(Object.keys(OPTIONS).map((name) => [name, null])));

/** Those options of a state that are set, by name. */
export const options = (state) =>
  Object.fromEntries(Object.keys(UNSET).map((name) => [name, state[name]]).filter(([, value]) => value !== null));

export const NOTHING = Object.freeze({
  view: "", // CLASSIFY for labels in place of neighbours, COPIES for groups of copies, MAP for the map
  pictures: [], // {kind, value, box: [left, top, right, bottom] as shares of the picture, or null}
  combine: "any",
  text: "", // what the pictures show, in words
  without: "", // and what not, separated by commas
  ...UNSET,
  top: null, // labels of each picture
  kind: "", // of copies: "near", or exact ones
  after: 0, // groups of copies before the page
  folder: "", // browsed while there are no pictures
  sort: "", // of a list of pictures: "name", "taken", and with "-" the other way round
  columns: "", // of which filters are shown beside the usual ones
  show: null, // the id of the picture in the larger view
});

export function read(search) {
  const found = { ...NOTHING, pictures: [] };
  for (const [name, value] of new URLSearchParams(search)) {
    if (KINDS.includes(name) && value) found.pictures.push({ kind: name, value, box: null });
    else if (name === "box" && found.pictures.length) found.pictures.at(-1).box = boxOf(value);
    else if (name === "combine" && value === "all") found.combine = value;
    else if (name === "view" && [CLASSIFY, COPIES, MAP].includes(value)) found.view = value;
    else if (name === "kind" && value === "near") found.kind = value;
    else if (name === "after") found.after = positive(value, Number.isSafeInteger) ?? 0;
    else if (name === "top") found.top = positive(value, Number.isSafeInteger);
    else if (Object.hasOwn(UNSET, name)) found[name] = OPTIONS[name](value);
    else if (["text", "without", "folder", "show", "sort", "columns"].includes(name)) found[name] = value;
  }
  return found;
}

/** The query string of a state, "" for that of the home page; equal states have equal strings. */
export function write(state) {
  const parts = [];
  const add = (name, value) => parts.push(`${name}=${encodeURIComponent(value).replace(/%(2C|2F|3A)/g, decode)}`);
  if (state.view) add("view", state.view);
  for (const { kind, value, box } of state.pictures) {
    add(kind, value);
    if (box) add("box", box.map((edge) => Number(edge.toFixed(4))).join(","));
  }
  if (points(state) > 1 && state.combine === "all") add("combine", "all");
  if (asks(state)) {
    if (state.text) add("text", state.text);
    if (state.without) add("without", state.without);
    if (state.top) add("top", state.top);
    for (const [name, value] of Object.entries(options(state))) add(name, value);
  } else {
    if (state.folder) add("folder", state.folder);
    for (const name of OF_LISTS) if (state[name]) add(name, state[name]);
    if (state.sort) add("sort", state.sort);
  }
  if (state.columns) add("columns", state.columns);
  if (state.view === COPIES && state.kind) add("kind", state.kind);
  if (state.view === COPIES && state.after) add("after", state.after);
  if (state.show) add("show", state.show);
  return parts.length ? `?${parts.join("&")}` : "";
}

/** Whether a state asks a question, with pictures or with words. */
export const asks = (state) => points(state) > 0;

/** The pictures and the text of a question together. */
export const points = ({ pictures, text }) => pictures.length + (text ? 1 : 0);

/** The state that asks with these pictures and words, with the options of another one. */
export const asking = (state, pictures, { text = "", without = "" } = {}) => ({
  ...state, view: [COPIES, MAP].includes(state.view) ? "" : state.view, pictures, text, without, show: null, folder: "",
});

/** Whether a state without pictures lists pictures of all folders, by what is known of them. */
export const isList = (state) => !asks(state) && Boolean(state.where || state.filter || state.sort);

/** The address of groups of copies. */
export const copies = ({ kind, after = 0 }) => write({ ...NOTHING, view: COPIES, kind: kind === "near" ? kind : "", after });

export const picture = (kind, value, box = null) => ({ kind, value, box });

/** The pictures that an address on this page names: a link to a search, a thumbnail, an original. [] for others. */
export function ownPictures(address, origin = location.origin) {
  let url;
  try {
    url = new URL(address, origin);
  } catch {
    return [];
  }
  if (url.origin !== origin) return [];
  const named = /^\/(?:images|originals)\/([^/]+)$/.exec(url.pathname);
  return named ? [picture("id", decodeURIComponent(named[1]))] : read(url.search).pictures;
}

const decode = (escaped) => decodeURIComponent(escaped);

function boxOf(text) {
  const edges = text.split(",").map(Number);
  const fits = edges.length === 4 && edges.every((edge) => edge >= 0 && edge <= 1);
  return fits && edges[0] < edges[2] && edges[1] < edges[3] ? edges : null;
}

function positive(text, valid, least = 1) {
  const value = text.trim() === "" ? NaN : Number(text);
  return valid(value) && value >= least ? value : null;
}
