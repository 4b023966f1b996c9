/* A picture that is zoomed and moved within its frame: with the wheel, two fingers, a double click, a drag, or by calls.
 * Knows neither keys nor dialogs. */

const MOST = 8; // CSS pixels for a pixel of the picture
const NEAR = 2; // times the fitted size, at least, after a double click
const WHEEL = 0.002; // of the factor's logarithm, for a pixel

export class PictureZoom {
  #frame;
  #changed;
  #image = null;
  #size = null; // of the picture: {width, height}
  #scale = 1; // of the fitted picture
  #at = [0, 0]; // the picture's middle, from the frame's, in pixels
  #pointers = new Map(); // id -> [x, y]

  /** changed(share): the width of the picture on the screen as a share of its own pixels, or null while fitted. */
  constructor(frame, changed) {
    this.#frame = frame;
    this.#changed = changed;
    frame.addEventListener("wheel", (event) => this.#turned(event), { passive: false });
    frame.addEventListener("dblclick", (event) =>
      this.zoomed ? this.fit() : this.by(Math.max(NEAR, 1 / this.#fitted()), this.#place(event)));
    frame.addEventListener("pointerdown", (event) => this.#pressed(event));
    frame.addEventListener("pointermove", (event) => this.#moved(event));
    for (const end of ["pointerup", "pointercancel"]) {
      frame.addEventListener(end, (event) => this.#pointers.delete(event.pointerId));
    }
  }

  get zoomed() {
    return this.#scale > 1;
  }

  /** Shows an image, fitted. size: the {width, height} of its picture, of which it may be a smaller form. */
  show(image, size) {
    this.#image = image;
    this.#size = size;
    this.#frame.replaceChildren(image);
    this.fit();
  }

  fit() {
    this.#set(1, [0, 0]);
  }

  /** Zooms by a factor; `at`, a point from the frame's middle, stays where it is. */
  by(factor, at = [0, 0]) {
    const most = Math.max(2 * NEAR, MOST / this.#fitted());
    const scale = Math.min(most, Math.max(1, this.#scale * factor));
    const grown = scale / this.#scale;
    this.#set(scale, at.map((each, axis) => each - (each - this.#at[axis]) * grown));
  }

  /** Moves the picture by so many pixels. */
  move(x, y) {
    this.#set(this.#scale, [this.#at[0] + x, this.#at[1] + y]);
  }

  #set(scale, at) {
    const { clientWidth, clientHeight } = this.#frame;
    const most = [clientWidth, clientHeight].map((size) => ((scale - 1) * size) / 2);
    this.#scale = scale;
    this.#at = at.map((each, axis) => Math.min(most[axis], Math.max(-most[axis], each)));
    this.#image.style.transform = `translate(${this.#at[0]}px, ${this.#at[1]}px) scale(${scale})`;
    this.#frame.classList.toggle("zoomed", scale > 1);
    this.#changed(scale > 1 ? scale * this.#fitted() : null);
  }

  /** The share of its own pixels at which the picture fills the frame. */
  #fitted() {
    const { width, height } = this.#size;
    return Math.min(this.#frame.clientWidth / (width || 1), this.#frame.clientHeight / (height || 1));
  }

  #turned(event) {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode ? 16 : 1) * (event.ctrlKey ? 5 : 1); // lines; two fingers on a pad
    this.by(Math.exp(-pixels * WHEEL), this.#place(event));
  }

  #pressed(event) {
    if (event.button !== 0) return;
    if (event.pointerType === "mouse") event.preventDefault(); // of dragging the image away
    this.#frame.focus({ preventScroll: true });
    this.#frame.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, this.#place(event));
  }

  #moved(event) {
    if (!this.#pointers.has(event.pointerId)) return;
    const before = [...this.#pointers.values()];
    this.#pointers.set(event.pointerId, this.#place(event));
    const now = [...this.#pointers.values()];
    const [from, to] = [middle(before), middle(now)];
    if (now.length === 2) this.by(distance(now) / (distance(before) || 1), from);
    this.move(to[0] - from[0], to[1] - from[1]);
  }

  #place(event) {
    const { left, top, width, height } = this.#frame.getBoundingClientRect();
    return [event.clientX - left - width / 2, event.clientY - top - height / 2];
  }
}

const middle = (points) => [0, 1].map((axis) => points.reduce((sum, each) => sum + each[axis], 0) / points.length);
const distance = ([first, second]) => Math.hypot(first[0] - second[0], first[1] - second[1]);
