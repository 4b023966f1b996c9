/* The pictures and words of the question: previews, a region drawn on one, several combined. Knows neither the service nor
 * the address; hooks: draw(place, box), remove(place), combine(how), add(), say(words) or null, and the verb of the question, "Search" or
 * "Classify". */

import { button, byId, icon, make } from "../kit/elements.js";
import * as region from "./region-box.js";
import * as words from "../kit/text-format.js";

/** state: with its pictures, text and without; known: for each picture what is known of it, see picture-lookup.js; combine: null where
 * each has an answer of its own; hooks as above. */
export function show(state, known, combine, hooks) {
  const { pictures } = state;
  const several = pictures.length + (state.text ? 1 : 0) > 1;
  const many = pictures.length > 1;
  const figures = pictures.map((each, place) => figure(each, known[place], { place, many, hooks }));
  const parts = [
    make("h2", {}, many ? `${pictures.length} pictures` : hooks.verb === "Search" ? "Query" : "Picture"),
    figures.length > 0 && make("ul", { class: many ? "asked several" : "asked" }, figures),
    hooks.say && wordsForm(state, hooks.say),
    several && combine && choice(combine, hooks.combine),
    button("Add a picture", "add", hooks.add, { class: "plain" }),
  ];
  byId("query").replaceChildren(...parts.filter(Boolean));
}

/** What the pictures show and what not, in words; a question has one of pictures and text at least. */
function wordsForm({ pictures, text, without }, say) {
  const field = (id, label, value, required) => {
    const input = make("input", { id, type: "text", value, required, autocomplete: "off", enterkeyhint: "search" });
    return [make("label", { for: id }, label, input), input];
  };
  const [shows, textField] = field("asked-text", pictures.length ? "and these words" : "Words", text, !pictures.length);
  const [lacks, withoutField] = field("asked-without", "without", without, false);
  const form = make("form", { class: "words", "aria-label": "Words of the query" }, shows, lacks, make("button", {}, "Search"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say({ text: textField.value.trim(), without: withoutField.value.trim() });
  });
  return form;
}

function figure(picture, known, { place, many, hooks }) {
  const view = make("div", { class: "frame" });
  const search = (box) => hooks.draw(place, box);
  const open = () => region.openDialog(known, picture.box, search, hooks.verb);
  const draw = button(picture.box ? "Change the region" : `${hooks.verb} a region`, "crop", open, { class: "plain" });
  const tools = make("div", { class: "tools" }, draw);
  if (picture.box) tools.append(button("Whole picture", "picture", () => search(null), { class: "plain" }));
  if (many) tools.append(button(`Remove ${known.name}`, "close", () => hooks.remove(place), { quiet: true }));
  preview(view, known, picture.box, search, draw, hooks.verb);
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

function choice(combine, chosen) {
  const option = (value, words) => {
    const input = make("input", { type: "radio", name: "combine", value, checked: combine === value });
    input.addEventListener("change", () => chosen(value));
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
