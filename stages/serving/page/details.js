/* Where an answer came from: commits, model, devices, exactness, time, and the files with their traces. */

import { byId, copying, make } from "./elements.js";
import * as words from "./words.js";

/** The line above the tiles: "12 nearest of 540 pictures · euclidean · exact · 41 ms". */
export function summary(answer, pictures) {
  const found = answer.neighbours.length;
  const parts = [`${words.count(found, "picture")}${pictures ? ` of ${words.number(pictures)}` : ""}`, answer.metric];
  parts.push(exactness(answer), words.seconds(time(answer)));
  return parts.join(" · ");
}

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
    ["Devices", `library on ${computed || "an unknown device"}, question on ${devices.service}`],
    ["Neighbours", exactness(answer)],
    ["Time", Object.entries(seconds ?? {}).map(([part, took]) => `${part} ${words.seconds(took)}`).join(", ")],
  ];
  byId("provenance").replaceChildren(
    make("dl", {}, ...rows.filter(([, value]) => value && value.length !== 0).map(row)),
    again(commits),
    files(answer.neighbours, tracing),
  );
}

export const traceAddress = (id, path) => `/trace/${encodeURIComponent(id)}?${new URLSearchParams({ path })}`;

const exactness = (answer) =>
  answer.exact ? "exact" : `approximate${answer.recall === null ? "" : `, recall ${words.share(answer.recall)}`}`;

const time = (answer) => Object.values(answer.seconds ?? {}).reduce((sum, each) => sum + each, 0);

const row = ([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value));

const commit = (id) => (id ? [make("code", {}, id), copying("Copy", id)] : []);

const digest = (hash) => (hash ? make("code", { title: hash }, `${hash.slice(0, 16)}…`) : null);

function again(commits) {
  const line = `lookalike serve --at ${commits.index}`;
  return make("p", { class: "again" }, "To ask this library again later: ", make("code", {}, line), copying("Copy", line));
}

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

export const trace = (id, path) =>
  make("a", { href: traceAddress(id, path), target: "_blank", rel: "noopener", "aria-label": `Trace ${path}` }, "Trace");
