/* What the bar at the top proposes while one types: pictures by name, and values of text columns. A combobox, as screen
 * readers know it. */

import { UNSHOWN } from "../filters/facet-list.js";
import * as clauses from "../filters/where-clauses.js";
import { byId, make } from "../kit/elements.js";
import { tell } from "../kit/notices.js";
import * as moves from "../kit/query-links.js";
import * as service from "../kit/service-client.js";
import { basename, count, number, shown, title } from "../kit/text-format.js";

const NAMES = 5, VALUES = 4, COLUMNS = 8; // most pictures, values of a column, columns
const PAUSE = 200; // milliseconds without a key

let columns = null; // the names of the text columns, once they are known
let under = new AbortController();
let timer = 0;

/** Connects the field. enabled(): whether the library can be searched now; worded(): whether by words. */
export function connect(enabled, worded) {
  const field = byId("address"), list = byId("proposals");
  const options = () => [...list.children];
  const current = () => options().findIndex((each) => each.getAttribute("aria-selected") === "true");
  const close = () => {
    clearTimeout(timer);
    under.abort();
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };
  const pick = (choice) => {
    close();
    field.value = "";
    field.blur();
    (choice.text ? moves.say : moves.list)(choice);
  };
  const select = (place) => {
    options().forEach((each, at) => each.setAttribute("aria-selected", String(at === place)));
    options()[place]?.scrollIntoView({ block: "nearest" });
    if (place >= 0) field.setAttribute("aria-activedescendant", options()[place].id);
  };
  const propose = async () => {
    const text = field.value.trim();
    under.abort();
    under = new AbortController();
    if (!text || isAddress(text) || !enabled()) return close();
    const found = await proposals(text, under.signal).catch(() => null);
    if (!found || field.value.trim() !== text) return undefined;
    if (worded()) found.unshift({ words: `Pictures of “${text}”`, detail: "by what they show", choice: { text } });
    list.replaceChildren(...found.map(({ words, detail, choice }, at) => {
      const option = make("li", { role: "option", id: `proposal-${at}`, "aria-selected": "false" }, make("bdi", {}, words), make("span", { class: "count" }, detail));
      option.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus until then
      option.addEventListener("click", () => pick(choice));
      return option;
    }));
    list.hidden = !found.length;
    field.setAttribute("aria-expanded", String(!list.hidden));
    return tell(found.length ? count(found.length, "suggestion") : "No suggestions");
  };
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(propose, PAUSE);
  });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && !list.hidden) close();
    else if (event.key === "Enter" && current() >= 0) options()[current()].click();
    else if (by && !list.hidden) select((current() + by + (current() < 0 && by < 0 ? 1 : 0) + options().length) % options().length);
    else return;
    event.preventDefault();
  });
  return { pick };
}

/** The filter of files with a text in their path, or in what cameras and people say of them. */
export const anywhere = (text) => clauses.write([{ anywhere: text }]);

export const isAddress = (text) => /^(https?:|data:|blob:|file:|\/\/|\/?\?|\/(images|originals)\/)/i.test(text);

/** What is proposed for a text: [{words, detail, choice}]. */
async function proposals(text, signal) {
  const named = clauses.write([{ name: text }]);
  columns ??= (await service.facets({ columns: "folder" }, signal)).columns.filter(({ type, name }) => type === "text" && !UNSHOWN.has(name)).map(({ name }) => name);
  const [pictures, ...found] = await Promise.all([
    service.pictures({ where: named, limit: NAMES }, signal),
    ...columns.slice(0, COLUMNS).map((name) => service.facets({ where: clauses.containing(name, text), columns: name }, signal)),
  ]);
  const folded = text.toLowerCase();
  const values = found.flatMap(({ facets: [facet] }) =>
    (facet?.values ?? [])
      .filter(({ value }) => value.toLowerCase().includes(folded)) // a picture may have further files
      .slice(0, VALUES)
      .map(({ value, pictures: held }) => ({
        words: `${title(facet.name)}: ${shown(facet.name, value)}`,
        detail: count(held, "picture"),
        choice: { where: clauses.write([{ column: facet.name, values: [value] }]) },
      })),
  );
  const whole = { words: `Names containing “${text}”`, detail: number(pictures.total), choice: { where: named } };
  const each = pictures.pictures.map(({ id, path }) => ({ words: basename(path), detail: path, choice: { where: named, show: id } }));
  return [...(pictures.total ? [whole] : []), ...values, ...each];
}
