/* A plain map of where pictures were taken: a grid of degrees, and circles with counts. Nothing comes from elsewhere.
 * Knows neither the service nor the address; choose(box) is called with the box of a circle, or of what was drawn. */

import { draw, make } from "../kit/elements.js";
import { grouped } from "../kit/groups.js";
import * as words from "../kit/text-format.js";

const WIDTH = 280, HEIGHT = 200; // units of the drawing
const ACROSS = 7, DOWN = 5; // cells within which places are one circle
const STEPS = [90, 45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];

/** The map of places: [{latitude, longitude, pictures, and the box south, north, west, east}], at least one. */
export function map(places, choose) {
  const view = bounds(places);
  const x = (longitude) => ((longitude - view.west) / (view.east - view.west)) * WIDTH;
  const y = (latitude) => ((view.north - latitude) / (view.north - view.south)) * HEIGHT;
  const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "map", role: "group", "aria-label": "Map of places" });
  for (const [axis, low, high] of [["x", view.west, view.east], ["y", view.south, view.north]]) {
    const step = STEPS.find((each) => (high - low) / each >= 3) ?? STEPS.at(-1);
    for (let at = Math.ceil(low / step) * step; at < high; at += step) {
      const place = axis === "x" ? x(at) : y(at);
      svg.append(draw("path", { d: axis === "x" ? `M${place} 0V${HEIGHT}` : `M0 ${place}H${WIDTH}` }));
      const label = axis === "x" ? { x: place + 3, y: HEIGHT - 5 } : { x: 4, y: place - 4 };
      if (axis === "x" ? place < WIDTH - 34 : place > 14 && place < HEIGHT - 14) svg.append(draw("text", label, words.degrees(at, axis === "x" ? "EW" : "NS")));
    }
  }
  const circles = clusters(places, view);
  const most = Math.max(...circles.map((each) => each.pictures));
  for (const each of circles.sort((one, other) => other.pictures - one.pictures)) {
    const said = `${words.count(each.pictures, "picture")} around ${words.degrees(each.latitude, "NS")}, ${words.degrees(each.longitude, "EW")}`;
    const circle = draw("g", { class: "place", role: "button", tabindex: 0, "aria-label": said, transform: `translate(${x(each.longitude)} ${y(each.latitude)})` });
    circle.append(draw("title", {}, said), draw("circle", { r: 9 + 8 * Math.sqrt(each.pictures / most) }), draw("text", { dy: "0.35em" }, words.brief(each.pictures)));
    circle.addEventListener("click", () => choose(each.box));
    circle.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(each.box);
    });
    svg.append(circle);
  }
  return make("figure", {}, svg, make("figcaption", { class: "count" }, "Click a circle to see its pictures."));
}

/** What of the earth is shown: all places with a margin, in the proportions of the drawing. */
function bounds(places) {
  const [south, north] = ends(places.map((each) => each.latitude));
  const [west, east] = ends(places.map((each) => each.longitude));
  const high = Math.max((north - south) * 1.35, ((east - west) * 1.35 * HEIGHT) / WIDTH, 0.006);
  const wide = (high * WIDTH) / HEIGHT;
  const [middle, centre] = [(south + north) / 2, (west + east) / 2];
  return { south: middle - high / 2, north: middle + high / 2, west: centre - wide / 2, east: centre + wide / 2 };
}

const ends = (values) => values.reduce(([low, high], each) => [Math.min(low, each), Math.max(high, each)], [Infinity, -Infinity]);

/** The places of each cell as one, in the middle of its pictures, with the box that holds them all. */
function clusters(places, { south, north, west, east }) {
  const cell = (each) => {
    const column = Math.floor(((each.longitude - west) / (east - west)) * ACROSS);
    const row = Math.floor(((each.latitude - south) / (north - south)) * DOWN);
    return `${column} ${row}`;
  };
  return grouped(places, cell).map((group) => {
    const pictures = group.reduce((sum, each) => sum + each.pictures, 0);
    const mean = (name) => group.reduce((sum, each) => sum + each[name] * each.pictures, 0) / pictures;
    const [south, west] = ["south", "west"].map((name) => rounded(Math.min(...group.map((each) => each[name])), Math.floor));
    const [north, east] = ["north", "east"].map((name) => rounded(Math.max(...group.map((each) => each[name])), Math.ceil));
    const box = { south, north, west, east };
    return { pictures, latitude: mean("latitude"), longitude: mean("longitude"), box };
  });
}

const rounded = (value, how) => how(value * 1e4) / 1e4;
