/* Where an answer came from: commits, model, devices, exactness, time, and the files with their traces. */

import { byId, copying, definitions, make } from "../kit/elements.js";
import * as words from "../kit/text-format.js";

/** The line above the tiles: "12 of 540 pictures · euclidean · exact · 41 ms". */
export function summary(answer, pictures) {
  const parts = [`${found(answer.neighbors)}${pictures ? ` of ${words.number(pictures)}` : ""}`, answer.metric];
  parts.push(exactness(answer), words.seconds(time(answer)));
  return parts.join(" · ");
}

/** "12 pictures and 30 near-duplicates". */
export function found(neighbours) {
  const pictures = new Set(neighbours.map((each) => each.group)).size;
  const copies = neighbours.length - pictures;
  return words.count(pictures, "picture") + (copies ? ` and ${words.count(copies, "near-duplicate")}` : "");
}

/** Fills the panel of an answer with labels. */
export function showLabels(answer) {
  const { commits, model, devices, seconds } = answer;
  const { backbone } = model;
  fill("origin-words", [
    ["Model", [make("span", {}, model.run), commit(commits.select)]],
    ["File", digest(model.sha256)],
    ["Takes", `${model.takes} of ${backbone.described}, fit ${backbone.fit}`],
    ["Backbone", [digest(backbone.sha256), commit(commits.model)]],
    ["Labelled", commit(commits.labelled)],
    ["Labels", commit(commits.labels)],
    ["Parameters", commit(commits.parameters)],
    ["Library", commit(commits.library)],
    ["Project", commits.project],
    ["Device", devices.service],
    ["Time", times(seconds)],
  ], command("To classify with this model later: ", `lookalike classify serve --at ${commits.select}`));
}

/** The seconds of a whole answer. */
export const time = (answer) => Object.values(answer.seconds ?? {}).reduce((sum, each) => sum + each, 0);

/** Fills the panel. tracing: whether the service can trace. */
export function show(answer, tracing) {
  const { commits, model, devices, seconds } = answer;
  const computed = (devices.index ?? []).join(", ");
  const rows = [
    ["Index", commit(commits.index)],
    ["Library", commit(commits.library)],
    ["Model", [make("span", {}, model.described ?? model.name), commit(commits.model)]],
    ["Weights", digest(model.sha256)],
    ["Vectors", `${words.number(model.dimension)} numbers, from ${model.image_size} pixels, fit ${model.fit}`],
    ["Project", commits.project],
    ["Devices", `library on ${computed || "an unknown device"}, query on ${devices.service}`],
    ["Neighbours", exactness(answer)],
    ["Time", times(seconds)],
  ];
  const again = command("To search this version of the library later: ", `lookalike serve --at ${commits.index}`);
  fill("provenance", rows, again, files(answer.neighbors, tracing));
}

const fill = (id, rows, ...further) => byId(id).replaceChildren(definitions(rows), ...further);

const times = (seconds) => Object.entries(seconds ?? {}).map(([part, took]) => `${part} ${words.seconds(took)}`).join(", ");

const exactness = (answer) => (answer.exact ? "exact" : "approximate");

const commit = (id) => (id ? [make("code", {}, id), copying("Copy", id)] : []);

const digest = (hash) => (hash ? make("code", { title: hash }, `${hash.slice(0, 16)}…`) : null);

const command = (text, line) => make("p", { class: "again" }, text, make("code", {}, line), copying("Copy", line));

/** A table of the answer's files, each with one click to its trace. */
function files(neighbours, tracing) {
  const lines = neighbours.flatMap((neighbour) => neighbour.sources.map((source) => [neighbour, source]));
  const cells = ([neighbour, source]) => [
    make("td", {}, String(neighbour.rank)),
    make("td", {}, make("bdi", {}, source.path)),
    make("td", {}, words.distance(neighbour.distance)),
    make("td", {}, tracing && trace(neighbour.id, source.path)),
  ];
  const head = ["Rank", "Source file", "Distance", tracing ? "Origin" : ""];
  return make(
    "div",
    { class: "table", tabindex: 0, role: "region", "aria-label": "Source files" },
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ...head.map((each) => make("th", { scope: "col" }, each)))),
      make("tbody", {}, ...lines.map((line) => make("tr", {}, ...cells(line)))),
    ),
  );
}

export function trace(id, path) {
  const href = `/trace/${encodeURIComponent(id)}?${new URLSearchParams({ path })}`;
  return make("a", { href, target: "_blank", rel: "noopener", "aria-label": `Trace ${path}` }, "Trace");
}
