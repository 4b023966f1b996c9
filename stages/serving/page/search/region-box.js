/* A box on a picture, drawn with the pointer or moved with the keys. Knows neither questions nor addresses: the box is
 * [left, top, right, bottom], as shares of the picture. */

import { byId, make } from "../kit/elements.js";
import { share } from "../kit/text-format.js";

const STEP = 0.02; // of the picture, for a press of an arrow key
const LEAST = 0.02; // the smallest edge of a box

/** Lets a box be drawn on `frame`, the element that the picture fills exactly. Returns {get, set}; drawn(box) is called
 * when the pointer or Enter ends a change, with null where the box was removed. touch: whether fingers draw too. */
export function drawable(frame, first, { drawn, changed = () => {}, touch = false }) {
  let box = first;
  const shape = make("div", { class: "box", tabindex: 0, role: "group", hidden: true });
  frame.append(shape);
  const set = (next) => {
    box = next;
    shape.hidden = !box;
    if (box) place(shape, box);
    changed(box);
  };
  listenToPointer(frame, shape, { current: () => box, set, drawn, touch });
  shape.addEventListener("keydown", (event) => {
    const moved = keyed(event, box);
    if (moved) set(moved);
    else if (event.key === "Enter") drawn(box);
    else if (["Delete", "Backspace"].includes(event.key)) drawn(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  set(first);
  return { get: () => box, set, focus: () => shape.focus() };
}

/** Gives a frame the shape of its image, in which an image smaller than the frame grows. */
export function fitting(image, frame) {
  image.addEventListener("load", () => {
    frame.style.setProperty("--ratio", String(image.naturalWidth / image.naturalHeight || 1));
  });
  return image;
}

/** An image of a picture: as the service makes it where the browser cannot show the source. failed(): neither can be
 * shown. */
export function shown(source, known, failed) {
  const image = make("img", { src: source, alt: known.name, draggable: "false" });
  image.addEventListener("load", () => (image.style.visibility = ""));
  const render = async () => {
    image.style.visibility = "hidden"; // until there is something to show
    image.addEventListener("error", failed);
    const url = await known.rendered();
    if (url) image.src = url;
    else failed();
  };
  image.addEventListener("error", render, { once: true });
  return image;
}

/** Shows the picture large in a dialog; done(box or null) is called if the box was changed there. known: of the picture.
 * verb: of the question, "Search" or "Classify". */
export function openDialog(known, first, done, verb) {
  byId("region-title").textContent = `${verb} a region`;
  byId("region-search").textContent = `${verb} this region`;
  const dialog = byId("region");
  const finish = (box) => {
    dialog.close();
    done(box);
  };
  const frame = make("div", { class: "frame" });
  frame.append(fitting(shown(known.original, known, () => {}), frame));
  const drawing = drawable(frame, first, { drawn: (box) => (box ? byId("region-search").focus() : finish(null)), changed: tell, touch: true });
  byId("region-picture").replaceChildren(frame);
  byId("region-search").onclick = () => finish(drawing.get());
  byId("region-clear").onclick = () => finish(null);
  byId("region-middle").onclick = () => {
    drawing.set([0.25, 0.25, 0.75, 0.75]);
    drawing.focus();
  };
  byId("region-clear").hidden = !first;
  tell(first);
  dialog.showModal();
}

function tell(box) {
  byId("region-search").disabled = !box;
  byId("region-words").textContent = box ? words(box) : "No region yet.";
}

const words = ([left, top, right, bottom]) =>
  `Region ${share(right - left)} wide and ${share(bottom - top)} high, ${share(left)} from the left and ${share(top)} from the top.`;

function place(shape, [left, top, right, bottom]) {
  shape.style.left = `${left * 100}%`;
  shape.style.top = `${top * 100}%`;
  shape.style.width = `${(right - left) * 100}%`;
  shape.style.height = `${(bottom - top) * 100}%`;
  const help = "Arrow keys move it, with Shift they resize it, Enter asks, Delete removes it.";
  shape.setAttribute("aria-label", `${words([left, top, right, bottom])} ${help}`);
}

function listenToPointer(frame, shape, { current, set, drawn, touch }) {
  let start = null; // {at, box}: where the pointer went down; the box if it is moved, null if a new one is drawn
  const at = (event) => {
    const { left, top, width, height } = frame.getBoundingClientRect();
    return [clamp((event.clientX - left) / width), clamp((event.clientY - top) / height)];
  };
  frame.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || (event.pointerType === "touch" && !touch)) return; // a finger scrolls the page
    event.preventDefault();
    frame.setPointerCapture(event.pointerId);
    start = { at: at(event), box: event.target === shape ? current() : null, before: current() };
  });
  frame.addEventListener("pointermove", (event) => {
    if (!start) return;
    const [x, y] = at(event);
    const [fromX, fromY] = start.at;
    if (start.box) set(shifted(start.box, x - fromX, y - fromY));
    else set([Math.min(x, fromX), Math.min(y, fromY), Math.max(x, fromX), Math.max(y, fromY)]);
  });
  const end = (event) => {
    if (!start) return;
    const { before } = start;
    start = null;
    const box = current();
    const small = !box || box[2] - box[0] < LEAST || box[3] - box[1] < LEAST;
    if (event.type === "pointercancel" || small) set(before);
    else if (box.join() !== before?.join()) drawn(box);
  };
  frame.addEventListener("pointerup", end);
  frame.addEventListener("pointercancel", end);
}

/** The box after a key; null for other keys. */
function keyed(event, box) {
  const directions = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
  const by = directions[event.key];
  if (!by) return null;
  if (!event.shiftKey) return shifted(box, ...by);
  const [left, top, right, bottom] = box;
  return [left, top, clamp(Math.max(left + LEAST, right + by[0])), clamp(Math.max(top + LEAST, bottom + by[1]))];
}

function shifted([left, top, right, bottom], x, y) {
  const byX = Math.min(1 - right, Math.max(-left, x));
  const byY = Math.min(1 - bottom, Math.max(-top, y));
  return [left + byX, top + byY, right + byX, bottom + byY];
}

const clamp = (value) => Math.min(1, Math.max(0, value));
