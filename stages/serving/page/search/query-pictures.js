/* The pictures and words of the question: previews, a region drawn on one, several combined. */

import { button, byId, icon, make } from "../kit/elements.js";
import * as moves from "../kit/query-links.js";
import * as service from "../kit/service-client.js";
import * as uploads from "../pictures/upload-store.js";
import * as region from "./region-box.js";
import * as words from "../kit/text-format.js";

/** Shows the question of a state. answer: to it, undefined before there is one. verb: "Search", whose question may have
 * words and combines its pictures, or "Classify". worded: whether words can be added. fit: of the model. choose(): lets the
 * user choose a picture to add. */
export async function show(state, answer, { verb, worded, fit, choose }) {
  const { pictures } = state;
  const known = await Promise.all(pictures.map((each, place) => lookUp(each, answer?.pictures[place], fit)));
  const several = pictures.length + (state.text ? 1 : 0) > 1;
  const many = pictures.length > 1;
  const searches = verb === "Search";
  const figures = pictures.map((_, place) => figure(pictures, place, known[place], verb));
  const parts = [
    make("h2", {}, many ? `${pictures.length} pictures` : searches ? "Query" : "Picture"),
    figures.length > 0 && make("ul", { class: many ? "asked several" : "asked" }, figures),
    searches && (worded || state.text || state.without) && wordsForm(state),
    several && searches && choice(state.combine),
    button("Add a picture", "add", choose, { class: "plain" }),
  ];
  byId("query").replaceChildren(...parts.filter(Boolean));
}

/** What is known of a picture of the state: {name, preview, original, rendered, width, height, inLibrary, pending};
 * rendered() gives, as a promise, the URL of a JPEG that the service makes, for a picture that the browser cannot show.
 * told: the answer's words on it, undefined before there is an answer. fit: of the model; with "crop" thumbnails are only
 * the middles of pictures, on which a region cannot be drawn. */
async function lookUp(picture, told, fit) {
  const facts = { width: told?.width, height: told?.height, inLibrary: Boolean(told?.known), pending: !told };
  if (picture.kind === "upload") {
    const kept = await uploads.find(picture.value);
    const preview = kept?.preview;
    const name = kept?.name ?? "a picture added earlier";
    return { name, preview, original: preview, rendered: () => renderedOf(kept), ...facts };
  }
  const id = picture.kind === "id" ? picture.value : told?.known && told.id;
  const original = id && `/originals/${encodeURIComponent(id)}`;
  const thumbnail = id && `/images/${encodeURIComponent(id)}`;
  const preview = fit === "crop" ? original : thumbnail;
  const rendered = async () => original?.replace("originals", "previews");
  return { name: nameOf(picture, told), preview, original, rendered, ...facts };
}

/** Makes it once; undefined where it cannot be made, for a reason that the answer to the question gives. */
function renderedOf(kept) {
  const making = () => service.patiently(() => service.preview(kept.file), { waiting: () => {} });
  const made = (jpeg) => (kept.preview = URL.createObjectURL(jpeg));
  return (kept.rendered ??= making().then(made, () => undefined));
}

function nameOf(picture, told) {
  if (told?.name) return words.basename(told.name);
  return picture.kind === "url" ? picture.value : "…";
}

/** What the pictures show and what not, in words; a question has one of pictures and text at least. */
function wordsForm({ pictures, text, without }) {
  const field = (id, label, value, required) => {
    const input = make("input", { id, type: "text", value, required, autocomplete: "off", enterkeyhint: "search" });
    return [make("label", { for: id }, label, input), input];
  };
  const [shows, textField] = field("asked-text", pictures.length ? "and these words" : "Words", text, !pictures.length);
  const [lacks, withoutField] = field("asked-without", "without", without, false);
  const form = make("form", { class: "words", "aria-label": "Words of the query" }, shows, lacks, make("button", {}, "Search"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    moves.say({ text: textField.value.trim(), without: withoutField.value.trim() }, pictures);
  });
  return form;
}

function figure(pictures, place, known, verb) {
  const { box } = pictures[place];
  const view = make("div", { class: "frame" });
  const search = (drawn) => moves.change(pictures.map((each, at) => (at === place ? { ...each, box: drawn } : each)));
  const open = () => region.openDialog(known, box, search, verb);
  const draw = button(box ? "Change the region" : `${verb} a region`, "crop", open, { class: "plain" });
  const tools = make("div", { class: "tools" }, draw);
  if (box) tools.append(button("Whole picture", "picture", () => search(null), { class: "plain" }));
  const remove = () => moves.change(pictures.filter((_, at) => at !== place));
  if (pictures.length > 1) tools.append(button(`Remove ${known.name}`, "close", remove, { quiet: true }));
  preview(view, known, box, search, draw, verb);
  const origin = known.inLibrary ? "in the library" : "";
  return make(
    "li",
    {},
    view,
    make(
      "div",
      { class: "about" },
      make("p", { class: "name", title: known.name }, make("bdi", {}, known.name)),
      make("p", { class: "facts" }, [words.pixels(known), origin].filter(Boolean).join(" · ")),
      tools,
    ),
  );
}

function preview(view, known, box, search, draw, verb) {
  const blank = (reason) => {
    view.replaceChildren(make("span", { class: "blank" }, icon("picture"), reason));
    draw.hidden = true;
  };
  if (!known.preview) return blank(known.pending ? "…" : "No preview of a picture from the web.");
  view.append(region.fitting(region.shown(known.preview, known, () => blank("This picture cannot be shown.")), view));
  view.title = `Draw a box to ${verb.toLowerCase()} a region`;
  region.drawable(view, box, { drawn: search });
}

function choice(combine) {
  const option = (value, words) => {
    const input = make("input", { type: "radio", name: "combine", value, checked: combine === value });
    input.addEventListener("change", () => moves.set({ combine: value }));
    return make("label", {}, input, words);
  };
  return make(
    "fieldset",
    { class: "combine" },
    make("legend", {}, "Nearest to"),
    option("any", "any of them"),
    option("all", "all of them"),
  );
}
