/* The ways in which pictures arrive: dropped, pasted, chosen, photographed, or by address; and into a question. */

import * as address from "../kit/address.js";
import { byId } from "../kit/elements.js";
import { complain } from "../kit/notices.js";
import * as moves from "../kit/query-links.js";
import { bytes, count } from "../kit/text-format.js";
import * as uploads from "./upload-store.js";

const FORM = 1 << 14; // bytes of a request beside its files

let standing = null;

/** Connects the page's controls. current: a Standing, which has the limits of questions. named(text): deals with what is no
 * address, if it is one. */
export function connect(current, named) {
  standing = current;
  let adding = false;
  const choose = byId("files");
  const photograph = byId("camera");
  for (const input of [choose, photograph]) {
    input.addEventListener("change", () => {
      if (input.files.length) receive({ files: [...input.files] }, adding);
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
    receive({ addresses: [text] });
    field.value = "";
    return field.blur();
  });
  pasting();
  dropping();
  return { choose: (add) => open(choose, add) };
}

/** Asks with what was dropped, pasted or chosen. add: together with the pictures of the question that is shown. */
async function receive({ files = [], addresses = [] }, add = false) {
  byId("message").replaceChildren();
  const before = add ? moves.state().pictures : [];
  const limits = standing.current?.limits;
  const problems = [];
  const pictures = [...before, ...(await kept(files, limits, problems)), ...addresses.flatMap((each) => pictured(each, problems))];
  if (limits && pictures.length > limits.pictures) {
    return complain(`A question takes up to ${count(limits.pictures, "picture")}; these are ${pictures.length}.`);
  }
  if (pictures.length > before.length) (add ? moves.change : moves.ask)(pictures);
  return problems.length ? complain(problems.join(" ")) : undefined;
}

/** Files go to the service together, so their sizes count together. */
async function kept(files, limits, problems) {
  const pictures = [];
  let room = (limits?.bytes ?? Infinity) - FORM;
  for (const file of files) {
    if (file.size > room) {
      problems.push(`${file.name} has ${bytes(file.size)}; a question takes up to ${bytes(limits.bytes)} in all.`);
      continue;
    }
    try {
      pictures.push(address.picture("upload", await uploads.keep(file)));
      room -= file.size;
    } catch {
      problems.push(`${file.name} cannot be read by this browser. If it is a folder, choose the pictures in it.`);
    }
  }
  return pictures;
}

function pictured(given, problems) {
  const own = address.ownPictures(given);
  if (own.length) return own;
  if (/^https?:\/\/[^/\s]/.test(given)) return [address.picture("url", given)];
  problems.push(`“${given}” is not a web address. Web addresses begin with https:// or http://.`);
  return [];
}

function pasting() {
  addEventListener("paste", (event) => {
    if (document.querySelector("dialog[open]")) return;
    const files = [...event.clipboardData.files];
    const text = event.clipboardData.getData("text/plain").trim();
    const writes = event.target.closest?.("input, textarea");
    if (files.length) receive({ files });
    else if (!writes && /^https?:\/\/\S+$/.test(text)) receive({ addresses: [text] });
    else return;
    event.preventDefault();
  });
}

function dropping() {
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
    zones[1].hidden = !address.asks(moves.state());
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
  const files = addresses.some((each) => each.startsWith(`${location.origin}/`)) ? [] : [...transfer.files];
  return { files, folders: folders.map((entry) => entry.name), addresses: files.length ? [] : addresses };
}
