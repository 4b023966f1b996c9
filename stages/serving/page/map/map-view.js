/* The view of the map: the canvas, the clusters as a list, and the pictures that a lasso or a cluster holds. */

import { MapCanvas } from "./map-canvas.js";
import { colour } from "./map-drawing.js";
import { menu, saveAs } from "../kit/download-menu.js";
import * as address from "../kit/address.js";
import { byId, make } from "../kit/elements.js";
import * as notices from "../kit/notices.js";
import { selection } from "../kit/selection.js";
import * as service from "../kit/service-client.js";
import { olderThan } from "../kit/service-status.js";
import * as words from "../kit/text-format.js";
import { tile } from "../pictures/picture-tile.js";
import * as moves from "../kit/query-links.js";

const FIT = "lookalike map fit";

export class MapView {
  heading = "#atlas-title"; // what takes the focus
  tiles = "atlas-tiles"; // the id of what holds the pictures
  pictures = []; // those of the list below the map
  #map = null; // the answer about the map as a whole
  #query = {}; // the filters
  #canvas = null;
  #renewed = null; // the promise of a newer map that is on its way

  /** standing: a Standing. */
  constructor(standing) {
    this.standing = standing;
    byId("atlas-lasso").addEventListener("click", () => this.#lasso(!this.#canvas.lassoing));
    byId("atlas-in").addEventListener("click", () => this.#canvas.zoom(1.6));
    byId("atlas-out").addEventListener("click", () => this.#canvas.zoom(1 / 1.6));
    byId("atlas-whole").addEventListener("click", () => this.#canvas.whole());
  }

  isOld(status) {
    return olderThan(status, this.#map?.commits);
  }

  forget() {
    this.#map = null;
  }

  /** Shows the map, or why there is none. signal: ends what is under way. */
  async show(state, signal) {
    document.title = "Map · lookalike";
    const before = JSON.stringify(this.#map?.layout);
    this.#query = Object.fromEntries(["where", "filter"].filter((name) => state[name]).map((name) => [name, state[name]]));
    try {
      const ask = (waiting) => this.standing.answer(() => service.map(signal), { signal, waiting });
      this.#map = await notices.slowly("Loading", "The map is on its way.", ask);
    } catch (failure) {
      if (failure.code !== "no-map") throw failure;
      const { message } = failure;
      return message.includes(FIT) ? this.#missing("This library has no map yet. To lay it out:") : this.#missing(words.sentence(message), "");
    }
    byId("atlas-said").replaceChildren();
    const { stale, pictures, library, clusters } = this.#map;
    if (stale && !pictures) return this.#missing("The layout of the map is of another model. To lay the library out again:");
    if (pictures < library) byId("atlas-said").append(make("p", {}, `${words.count(library - pictures, "picture")} will be placed in a moment.`));
    byId("atlas-title").textContent = "Map";
    byId("atlas-summary").textContent = `${words.count(pictures, "picture")} in ${words.count(clusters.length, "cluster")}; similar ones lie together`;
    byId("atlas-body").hidden = false;
    this.#canvas ??= new MapCanvas(byId("atlas-canvas"), {
      load: (...place) => this.#tile(...place),
      hover: (what, x, y) => this.#hover(what, x, y),
      pick: (id) => moves.ask([address.picture("id", id)]),
      chosen: (outline) => this.#choose({ outline: outline.flat().map((each) => each.toFixed(5)).join(",") }, true),
    });
    this.#canvas.clusters = clusters.map((each) => ({ ...each, name: each.marks.filter(({ column }) => column !== "colour").map(said)[0] ?? "" }));
    byId("atlas-clusters").replaceChildren(...clusters.map((each) => this.#cluster(each)));
    byId("atlas-downloads").replaceChildren(menu(this.#downloads({})));
    this.#list(null);
    this.#canvas.reset();
    if (before !== JSON.stringify(this.#map.layout)) this.#canvas.whole();
    return undefined;
  }

  #missing(reason, remedy = FIT) {
    byId("atlas-title").textContent = "Map";
    byId("atlas-summary").textContent = "";
    byId("atlas-body").hidden = true;
    byId("atlas-said").replaceChildren(make("p", {}, reason), ...(remedy ? [notices.commandLine(remedy)] : []));
    this.#list(null);
  }

  async #tile(z, x, y) {
    try {
      return await service.mapTile(z, x, y, { ...this.#query, commit: this.#map.commits.map });
    } catch (failure) {
      if (failure.code !== "map-moved") notices.complain(failure.message);
      else this.#renewed ??= this.show(moves.state(), new AbortController().signal).finally(() => (this.#renewed = null));
      return null;
    }
  }

  /** A cluster in the list: its example, what marks it, and its pictures on a click. */
  #cluster({ cluster, pictures, id, x, y, radius, marks }) {
    const name = marks.length ? marks.map(said).join(", ") : `Cluster ${cluster + 1}`;
    const press = () => {
      this.#canvas.show(x, y, Math.max(radius, 0.005));
      this.#choose({ cluster }, false, name);
    };
    const image = make("img", { src: `/images/${id}`, alt: "", loading: "lazy" });
    image.style.borderColor = colour(cluster); // a style in markup is against the page's policy
    const why = marks.map((each) => `${said(each)}: ${words.percent(100 * each.share)} of its pictures, ${each.lift} times as many as in the library`).join("; ");
    return make("li", {}, make("button", { type: "button", class: "plain", title: why, on: { click: press } }, image, make("span", {}, make("bdi", {}, name), make("span", { class: "count" }, words.count(pictures, "picture")))));
  }

  /** Lists the pictures of a part of the map; select: and selects them. */
  async #choose(part, select, name = "") {
    this.#lasso(false);
    try {
      const found = await service.mapPictures({ ...this.#query, ...part });
      if (select) selection.add(found.ids);
      if (select && found.total > found.ids.length) notices.complain(`Selected the first ${words.count(found.ids.length, "picture")}.`);
      this.#list(found, part, name);
    } catch (failure) {
      notices.complain(failure.message);
    }
  }

  #list(found, part, name) {
    this.pictures = found?.pictures ?? [];
    byId("atlas-found").hidden = !found;
    byId("atlas-tiles").replaceChildren(...this.pictures.map(tile));
    if (!found) return;
    const shown = found.total > this.pictures.length ? `, the first ${words.number(this.pictures.length)} shown` : "";
    byId("atlas-count").textContent = `${name ? `${name}: ` : ""}${words.count(found.total, "picture")}${shown}`;
    byId("atlas-save").replaceChildren(menu(this.#downloads(part)));
    byId("atlas-found").scrollIntoView({ block: "nearest" });
    notices.tell(byId("atlas-count").textContent);
  }

  #downloads(part) {
    const png = () => byId("atlas-canvas").toBlob((blob) => saveAs(blob, "map.png"));
    return [
      { words: "Table (CSV)", href: `/map/table?${new URLSearchParams({ ...this.#query, ...part })}` },
      { words: "Map as shown (PNG)", save: png },
    ];
  }

  #lasso(on) {
    this.#canvas.lassoing = on;
    byId("atlas-lasso").setAttribute("aria-pressed", String(on));
    byId("atlas-canvas").classList.toggle("lassoing", on);
  }

  #hover(what, x, y) {
    const tip = byId("atlas-tip");
    tip.hidden = !what;
    if (!what) return;
    const [mark] = this.#map.clusters.find((each) => each.cluster === what.cluster)?.marks ?? [];
    if (tip.dataset.id !== what.id) tip.replaceChildren(make("img", { src: `/images/${what.id}`, alt: "" }), mark ? make("p", {}, said(mark)) : "");
    tip.dataset.id = what.id;
    const { clientWidth: width, clientHeight: height } = byId("atlas-canvas");
    tip.style.left = `${Math.min(x + 16, width - 180)}px`;
    tip.style.top = `${Math.min(y + 16, height - 190)}px`;
  }
}

/** A mark in words: a value speaks for itself, true and false do not. */
function said({ column, value }) {
  if (typeof value === "boolean") return `${words.title(column)}: ${value ? "yes" : "no"}`;
  return column === "colour" ? `mostly ${value}` : words.shown(column, value);
}
