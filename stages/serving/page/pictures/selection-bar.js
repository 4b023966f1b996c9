/* The bar of the selected pictures: how many there are, and what can be done with them. Knows neither the service nor the
 * views: shown() gives the ids of the pictures that are seen, most() the {button: pictures} that a button can deal with. */

import { byId } from "../kit/elements.js";
import { tell } from "../kit/notices.js";
import { selection } from "../kit/selection.js";
import { count } from "../kit/text-format.js";
import { drawTicks } from "./picture-tile.js";

/** Connects the bar; call `draw` after the view has changed. */
export function connect(shown, most) {
  const select = byId("selection-shown");
  select.addEventListener("click", () => selection.add(shown()));
  byId("selection-none").addEventListener("click", () => {
    selection.clear();
    byId("main").focus(); // the bar is gone, and with it the button
  });
  const draw = () => {
    const { size } = selection;
    byId("selection").hidden = !size;
    byId("selection-count").textContent = `${count(size, "picture")} selected`;
    for (const [id, limit] of Object.entries(most())) byId(id).disabled = size > limit;
    select.hidden = shown().every((id) => selection.has(id));
    document.body.classList.toggle("selecting", size > 0);
    drawTicks();
  };
  selection.addEventListener("change", () => {
    draw();
    tell(`${count(selection.size, "picture")} selected`);
  });
  return { draw };
}
