/* The menu that saves what is shown: as a table, or the pictures themselves. Knows neither the service nor the address. */

import { button, icon, make } from "./elements.js";

/** items: {words, href} for what a link saves, {words, save()} for what is made first, {words, why} for what cannot be. */
export function menu(items) {
  const close = () => (details.open = false);
  const line = ({ words, href, save, why }) => {
    if (why) return make("li", {}, make("p", { class: "count" }, `${words}: ${why}`));
    if (href) return make("li", {}, make("a", { href, download: true, on: { click: close } }, words));
    return make("li", {}, button(words, null, () => save(close()), { class: "plain" }));
  };
  const details = make("details", { class: "downloads" }, make("summary", {}, icon("download"), "Download"), make("ul", {}, items.map(line)));
  details.addEventListener("focusout", () => setTimeout(() => details.contains(document.activeElement) || close(), 200));
  details.addEventListener("keydown", (event) => event.key === "Escape" && (close(), details.querySelector("summary").focus()));
  return details;
}

/** Saves bytes as a file. */
export function saveAs(blob, name) {
  const href = URL.createObjectURL(blob);
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
