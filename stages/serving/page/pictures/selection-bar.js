/* The bar of the selected pictures: how many there are, and what can be done with them, but for labels. */

import { saveAs } from "../kit/download-menu.js";
import * as address from "../kit/address.js";
import { byId } from "../kit/elements.js";
import { complain, tell } from "../kit/notices.js";
import * as moves from "../kit/query-links.js";
import { selection } from "../kit/selection.js";
import * as service from "../kit/service-client.js";
import { count } from "../kit/text-format.js";
import { drawTicks } from "./picture-tile.js";

/** Connects the bar; call `draw` after the view has changed. standing: a Standing, which has the limits. shown() gives the
 * ids of the pictures that are seen. */
export function connect(standing, shown) {
  const select = byId("selection-shown");
  select.addEventListener("click", () => selection.add(shown()));
  byId("selection-similar").addEventListener("click", () => moves.ask(selection.keys.map((id) => address.picture("id", id))));
  byId("selection-zip").addEventListener("click", () => {
    const form = new URLSearchParams(selection.keys.map((id) => ["id", id]));
    service.zip(form).then((blob) => saveAs(blob, "pictures.zip"), (failure) => complain(failure.message));
  });
  byId("selection-none").addEventListener("click", () => {
    selection.clear();
    byId("main").focus(); // the bar is gone, and with it the button
  });
  const draw = () => {
    const { size } = selection;
    byId("selection").hidden = !size;
    byId("selection-count").textContent = `${count(size, "picture")} selected`;
    byId("selection-similar").disabled = size > (standing.current?.limits.pictures ?? 1);
    byId("selection-zip").disabled = size > (standing.current?.zip?.files ?? 1);
    select.hidden = !shown().length;
    document.body.classList.toggle("selecting", size > 0);
    drawTicks();
  };
  selection.addEventListener("change", () => {
    draw();
    tell(`${count(selection.size, "picture")} selected`);
  });
  return { draw };
}
