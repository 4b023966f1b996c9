/* The map on a canvas: tiles at the level that the zoom asks for, thumbnails when close, hovering, and a lasso. What a
 * frame costs follows from the size of the window, however many pictures there are: tiles far away are small pictures of
 * counts, made once. Knows neither the service nor the address. */

import { GRID, bitmapOf, colour, label } from "./map-drawing.js";

const SIDE = 512; // pixels of a tile, at least
const DEEPEST = 14; // the last level, as the service has it
const THUMB = 60, CLOSE = 300; // pixels of a thumbnail, and the most points in sight that have any
const REACH = 12; // pixels from the pointer to what it points at
const KEPT = 300; // tiles, and as many thumbnails

export class MapCanvas {
  lassoing = false; // whether dragging draws an outline
  clusters = []; // {x, y, cluster, id, name}: shown while far away
  #tiles = new Map(); // "z/x/y" -> {data, bitmap}
  #thumbs = new Map(); // id -> Image
  #view = { x: 0, y: 0, scale: 0 }; // the middle, and pixels of a unit
  #down = new Map(); // pointers that are down
  #outline = [];
  #near = null; // what the pointer points at
  #points = []; // those in sight, as [x, y, cluster, id]
  #asked = 0; // the frame that is under way

  /** load(z, x, y) gives a tile; hover(what, x, y) hears what is pointed at: {id, cluster} or {pictures}, or null;
   * pick(id) of a click, and chosen(outline) of a lasso. */
  constructor(element, { load, hover, pick, chosen }) {
    Object.assign(this, { element, load, hover, pick, chosen });
    this.context = element.getContext("2d");
    new ResizeObserver(() => this.#resize()).observe(element);
    element.addEventListener("pointerdown", (event) => this.#press(event));
    element.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) element.addEventListener(name, (event) => this.#release(event));
    element.addEventListener("pointerleave", () => this.#point(null));
    element.addEventListener("wheel", (event) => (event.preventDefault(), this.zoom(0.998 ** event.deltaY, event.offsetX, event.offsetY)), { passive: false });
  }

  /** Forgets all tiles: another map, or another filter. */
  reset() {
    this.#tiles.clear();
    this.redraw();
  }

  whole() {
    const { clientWidth: width, clientHeight: height } = this.element;
    this.#view = { x: 0, y: 0, scale: Math.min(width, height) / 2.1 };
    this.redraw();
  }

  /** Brings a place into the middle, so near that a circle of this radius fills half of the map. */
  show(x, y, radius) {
    this.#view = { x, y, scale: Math.min(this.element.clientWidth, this.element.clientHeight) / 4 / radius };
    this.redraw();
  }

  /** Zooms around a point of the element, by default its middle. */
  zoom(by, left = this.element.clientWidth / 2, top = this.element.clientHeight / 2) {
    const [x, y] = this.#place(left, top);
    const least = Math.min(this.element.clientWidth, this.element.clientHeight) / 4;
    const scale = Math.min(Math.max(this.#view.scale * by, least), SIDE * 2 ** DEEPEST);
    const share = this.#view.scale / scale;
    this.#view = { x: x + (this.#view.x - x) * share, y: y + (this.#view.y - y) * share, scale };
    this.redraw();
  }

  redraw() {
    this.#asked ||= requestAnimationFrame(() => ((this.#asked = 0), this.draw()));
  }

  /** Draws a frame now. */
  draw() {
    const { context, element } = this;
    const ratio = element.width / element.clientWidth || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, element.clientWidth, element.clientHeight);
    const tiles = this.#inSight();
    for (const each of tiles) if (each.bitmap) this.#drawCells(each);
    this.#points = tiles.flatMap((each) => each.data.points ?? []).filter((each) => this.#isInSight(each));
    const size = this.#points.length > 20_000 ? 2 : 5;
    for (const [x, y, cluster] of this.#points) {
      context.fillStyle = colour(cluster);
      const [left, top] = this.#spot(x, y);
      context.fillRect(left - size / 2, top - size / 2, size, size);
    }
    const close = this.#points.length <= CLOSE && !tiles.some((each) => each.bitmap);
    if (close) this.#drawThumbs(this.#points, THUMB);
    else this.#drawThumbs(this.clusters.map(({ x, y, cluster, id, name }) => [x, y, cluster, id, name]), 44);
    this.#drawOutline();
  }

  /** The tiles to be drawn: of each place the one of the right level or, until that is there, one further up. */
  #inSight() {
    const { scale } = this.#view;
    const level = Math.min(DEEPEST, Math.max(0, Math.floor(Math.log2((2 * scale) / SIDE) + 0.5)));
    const [west, north] = this.#place(0, 0).map((each) => Math.max(0, Math.floor(((each + 1) / 2) * 2 ** level)));
    const ends = this.#place(this.element.clientWidth, this.element.clientHeight);
    const [east, south] = ends.map((each) => Math.min(2 ** level - 1, Math.floor(((each + 1) / 2) * 2 ** level)));
    const found = new Map();
    for (let y = north; y <= south; y += 1) {
      for (let x = west; x <= east; x += 1) {
        for (let up = 0; up <= level; up += 1) {
          const key = `${level - up}/${x >> up}/${y >> up}`;
          const tile = this.#tiles.get(key);
          if (!tile && up === 0 && !this.#hasPoints(level, x, y)) this.#load(level, x, y, key);
          if (!tile?.data) continue;
          const only = tile.bitmap && up ? [x, y, level] : null;
          found.set(only ? `${key} ${x} ${y}` : key, { ...tile, place: [x >> up, y >> up, level - up], only });
          break;
        }
      }
    }
    return [...found.values()];
  }

  /** Whether a tile further up has all of a tile's points. */
  #hasPoints(level, x, y) {
    for (let up = 1; up <= level; up += 1) if (this.#tiles.get(`${level - up}/${x >> up}/${y >> up}`)?.data?.points) return true;
    return false;
  }

  async #load(z, x, y, key) {
    const tile = {};
    this.#tiles.set(key, tile);
    if (this.#tiles.size > KEPT) this.#tiles.delete(this.#tiles.keys().next().value);
    const data = await this.load(z, x, y);
    if (!data) return void this.#tiles.delete(key);
    if (this.#tiles.get(key) !== tile) return undefined; // another filter has come
    if (data.cells) tile.bitmap = bitmapOf(data.cells);
    tile.data = data;
    return this.redraw();
  }

  #drawCells({ bitmap, place: [x, y, level], only }) {
    const box = (column, row, z) => [...this.#spot((2 * column) / 2 ** z - 1, (2 * row) / 2 ** z - 1), (2 * this.#view.scale) / 2 ** z];
    const [left, top, side] = box(...(only ?? [x, y, level]));
    const share = only ? GRID / 2 ** (only[2] - level) : GRID;
    const [from, down] = only ? [only[0] * share - x * GRID, only[1] * share - y * GRID] : [0, 0];
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(bitmap, from, down, share, share, left, top, side, side);
  }

  /** Thumbnails of points [x, y, cluster, id, name], as many as do not hide each other. */
  #drawThumbs(points, size) {
    const { context } = this;
    const taken = new Set();
    context.font = "600 12px system-ui, sans-serif";
    for (const [x, y, cluster, id, name] of points) {
      const cell = [x, y].map((each) => Math.round((each * this.#view.scale) / (size + 8)));
      const around = [-1, 0, 1].flatMap((a) => [-1, 0, 1].map((b) => `${cell[0] + a} ${cell[1] + b}`));
      if (name === undefined ? taken.has(cell.join(" ")) : around.some((each) => taken.has(each))) continue;
      taken.add(cell.join(" "));
      const [left, top] = this.#spot(x, y);
      const image = this.#thumb(id);
      if (!image.complete || !image.naturalWidth) continue;
      const fit = size / Math.max(image.naturalWidth, image.naturalHeight);
      const [width, height] = [image.naturalWidth * fit, image.naturalHeight * fit];
      context.fillStyle = colour(cluster);
      context.fillRect(left - width / 2 - 2, top - height / 2 - 2, width + 4, height + 4);
      context.drawImage(image, left - width / 2, top - height / 2, width, height);
      if (name) label(context, name, left, top + height / 2 + 14);
    }
  }

  #thumb(id) {
    let image = this.#thumbs.get(id);
    if (!image) {
      image = new Image();
      image.addEventListener("load", () => this.redraw());
      image.src = `/images/${id}`;
      this.#thumbs.set(id, image);
      if (this.#thumbs.size > KEPT * 2) this.#thumbs.delete(this.#thumbs.keys().next().value);
    }
    return image;
  }

  #drawOutline() {
    if (this.#outline.length < 2) return;
    const { context } = this;
    context.beginPath();
    for (const each of this.#outline) context.lineTo(...this.#spot(...each));
    context.closePath();
    context.fillStyle = "rgb(36 86 198 / 15%)";
    context.strokeStyle = "#2456c6";
    context.lineWidth = 2;
    context.fill();
    context.stroke();
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width) return;
    Object.assign(this.element, { width: width * devicePixelRatio, height: height * devicePixelRatio });
    if (this.#view.scale) this.redraw();
    else this.whole();
  }

  #press(event) {
    this.element.setPointerCapture(event.pointerId);
    this.#down.set(event.pointerId, { x: event.offsetX, y: event.offsetY, moved: false });
    if (this.lassoing || event.shiftKey) this.#outline = [this.#place(event.offsetX, event.offsetY)];
  }

  #move({ pointerId, offsetX: x, offsetY: y }) {
    const before = this.#down.get(pointerId);
    if (!before) return this.#point(x, y);
    if (Math.hypot(x - before.x, y - before.y) < (before.moved ? 1 : 4)) return undefined;
    if (this.#outline.length && this.#down.size === 1) this.#outline.push(this.#place(x, y));
    else if (this.#down.size === 1) this.#view = { ...this.#view, x: this.#view.x - (x - before.x) / this.#view.scale, y: this.#view.y - (y - before.y) / this.#view.scale };
    else {
      this.#outline = [];
      const [other] = [...this.#down].filter(([id]) => id !== pointerId).map(([, each]) => each);
      this.zoom(Math.hypot(x - other.x, y - other.y) / Math.max(1, Math.hypot(before.x - other.x, before.y - other.y)), other.x, other.y);
    }
    this.#down.set(pointerId, { x, y, moved: true });
    return this.redraw();
  }

  #release(event) {
    const { pointerId, offsetX, offsetY } = event;
    const { moved } = this.#down.get(pointerId) ?? { moved: true };
    this.#down.delete(pointerId);
    const outline = thinned(this.#outline);
    this.#outline = [];
    this.redraw();
    if (event.type === "pointercancel") return;
    if (moved && outline.length > 2) this.chosen(outline);
    if (!moved) this.#point(offsetX, offsetY);
    if (!moved && this.#near?.id) this.pick(this.#near.id);
  }

  /** Finds out what is at a point of the element, and tells of it. */
  #point(left, top) {
    const distance = ([x, y]) => Math.hypot(...this.#spot(x, y).map((each, at) => each - [left, top][at]));
    const reach = this.#points.length <= CLOSE ? THUMB / 2 : REACH;
    const nearest = left === null ? null : this.#points.reduce((best, each) => (distance(each) < (best ? distance(best) : reach) ? each : best), null);
    this.#near = nearest && { cluster: nearest[2], id: nearest[3] };
    this.element.style.cursor = nearest ? "pointer" : "";
    this.hover(this.#near, left, top);
  }

  #spot(x, y) {
    return [(x - this.#view.x) * this.#view.scale + this.element.clientWidth / 2, (y - this.#view.y) * this.#view.scale + this.element.clientHeight / 2];
  }

  #place(left, top) {
    return [(left - this.element.clientWidth / 2) / this.#view.scale + this.#view.x, (top - this.element.clientHeight / 2) / this.#view.scale + this.#view.y];
  }

  #isInSight([x, y]) {
    const [left, top] = this.#spot(x, y);
    return left > -THUMB && top > -THUMB && left < this.element.clientWidth + THUMB && top < this.element.clientHeight + THUMB;
  }
}

/** An outline with at most 150 corners. */
const thinned = (outline) => outline.filter((_, at) => at % Math.ceil(outline.length / 150) === 0);
