/* The ways in which pictures arrive: dropped, pasted, chosen, photographed, or by address. Calls
 * receive({files, addresses}, add) with what came; add: to the question that is shown; or named(text) with what is no
 * address. Asks nothing itself. */

import { byId } from "../kit/elements.js";

/** Connects the page's controls. `asking()` says whether a question is shown, to which pictures can be added. */
export function connect(receive, asking, complain, named) {
  let adding = false;
  const choose = byId("files");
  const photograph = byId("camera");
  for (const input of [choose, photograph]) {
    input.addEventListener("change", () => {
      if (input.files.length) receive({ files: [...input.files], addresses: [] }, adding);
      input.value = ""; // the same file may be chosen again
    });
  }
  const open = (input, add) => {
    adding = add;
    input.click();
  };
  byId("choose").addEventListener("click", () => open(choose, false));
  byId("photograph").addEventListener("click", () => open(photograph, false));
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const field = byId("address");
    const text = field.value.trim();
    if (!text) return open(choose, false);
    if (named(text)) return undefined;
    receive({ files: [], addresses: [text] }, false);
    field.value = "";
    return field.blur();
  });
  pasting(receive);
  dropping(receive, asking, complain);
  return { choose: (add) => open(choose, add) };
}

function pasting(receive) {
  addEventListener("paste", (event) => {
    if (document.querySelector("dialog[open]")) return;
    const files = [...event.clipboardData.files];
    const text = event.clipboardData.getData("text/plain").trim();
    const writes = event.target.closest?.("input, textarea");
    if (files.length) receive({ files, addresses: [] }, false);
    else if (!writes && /^https?:\/\/\S+$/.test(text)) receive({ files: [], addresses: [text] }, false);
    else return;
    event.preventDefault();
  });
}

function dropping(receive, asking, complain) {
  const veil = byId("drop");
  const zones = veil.querySelectorAll("[data-add]");
  const aim = (event) => {
    const target = event.target.closest?.("[data-add]");
    for (const zone of zones) zone.classList.toggle("aimed", zone === target);
  };
  const close = () => (veil.hidden = true);
  addEventListener("dragenter", (event) => {
    if (!carries(event.dataTransfer) || document.querySelector("dialog[open]")) return;
    veil.hidden = false;
    zones[1].hidden = !asking();
  });
  addEventListener("dragover", (event) => {
    if (veil.hidden) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    aim(event);
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) close(); // the pointer left the window
  });
  addEventListener("dragend", close);
  addEventListener("drop", (event) => {
    if (veil.hidden) return;
    event.preventDefault();
    close();
    const add = event.target.closest?.("[data-add]")?.dataset.add === "yes";
    const { files, folders, addresses } = contents(event.dataTransfer);
    if (folders.length) complain(`${folders[0]} is a folder. Drop the pictures in it instead.`);
    else if (files.length || addresses.length) receive({ files, addresses }, add);
    else complain("That is neither a picture nor a web address. Drop a file, or a picture from a web page.");
  });
}

const carries = (transfer) => ["Files", "text/uri-list"].some((type) => transfer.types.includes(type));

/** The files, the names of folders, and the addresses of what was dropped; files before addresses, since a browser gives
 * both for a picture of a page. */
function contents(transfer) {
  const folders = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry?.isDirectory);
  const list = transfer.getData("text/uri-list").split(/\r?\n/);
  const addresses = list.filter((line) => /^https?:\/\//.test(line));
  const files = addresses.some((address) => address.startsWith(`${location.origin}/`)) ? [] : [...transfer.files];
  return { files, folders: folders.map((entry) => entry.name), addresses: files.length ? [] : addresses };
}
