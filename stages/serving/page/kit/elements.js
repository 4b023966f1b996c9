/* Elements made from plain values. Texts become text nodes, never markup, so no name of a file can become HTML. */

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children. `on` holds listeners; true and false set and omit an attribute; other values
 * are texts. Children: elements, texts; null and false are skipped. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** The same of an element of SVG, whose attributes are texts. */
export function draw(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** One of the icons at the end of index.html, for the eyes alone. */
export const icon = (name) =>
  draw("svg", { class: "icon", "aria-hidden": "true" }, draw("use", { href: `#icon-${name}` }));

/** A list of terms with their values, of which those without a value are left out. */
export const definitions = (rows) =>
  make("dl", {}, rows.filter(([, value]) => value && value.length !== 0).map(([term, value]) => make("div", {}, make("dt", {}, term), make("dd", {}, value))));

/** A button with an icon and its words; `quiet` hides the words from the eyes and shows them on hovering. */
export function button(words, name, press, { quiet = false, ...attributes } = {}) {
  const shown = quiet ? [icon(name)] : [name && icon(name), make("span", {}, words)];
  const named = quiet ? { "aria-label": words, title: words, class: "quiet" } : {};
  return make("button", { type: "button", ...named, ...attributes, on: { click: press } }, ...shown);
}

/** A button that copies a text and says so in place of its words. */
export function copying(words, text) {
  const copy = async () => {
    const said = (await copied(text)) ? "Copied" : "Press Ctrl+C to copy";
    label.textContent = said;
    setTimeout(() => (label.textContent = words), 2500);
  };
  const pressed = button(words, "copy", copy);
  const label = pressed.querySelector("span");
  label.setAttribute("aria-live", "polite");
  return pressed;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedByHand(text); // a page without TLS, as behind a proxy that ends it, has no clipboard
  }
}

function copiedByHand(text) {
  const field = make("textarea", { class: "unseen", readonly: true });
  field.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  const focused = document.activeElement;
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return done;
}

export const byId = (id) => document.getElementById(id);
