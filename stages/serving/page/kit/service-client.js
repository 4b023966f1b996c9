/* The service over HTTP. Knows nothing of the page; its failures are Refusal (with the service's own words) and
 * Unreachable. */

export class Refusal extends Error {
  /** wait: seconds that the service asks for, or null. pictures: the {picture, message} of those of several that cannot
   * be asked about, by their places in the question. */
  constructor(status, code, message, wait, pictures) {
    super(message);
    Object.assign(this, { status, code, wait, pictures });
  }
}

export class Unreachable extends Error {}

/** The code of a question with a picture that this browser does not have, or no longer. */
export const UPLOAD_GONE = "upload-gone";

const LONGEST = 30; // seconds between two attempts at a service that does not answer

export const status = (signal) => call("/status", { signal });

/** What is asked by an address: (query, signal) gives the answer. */
const asked = (path) => (query, signal) => call(`${path}?${new URLSearchParams(query)}`, { signal });

/** A page of a folder: {folder, folders, pictures, after, total}. query: {folder, after, limit}. */
export const library = asked("/library");

/** The values of columns with counts: {pictures, matching, columns, facets}. query: {where, filter, columns}. */
export const facets = asked("/facets");

/** A page of the pictures that a filter admits: {pictures, total, after}. query: {where, filter, sort, after, limit}. */
export const pictures = asked("/pictures");

/** Where the pictures were taken: {places}. query: {where, filter}. */
export const places = asked("/places");

/** A page of the groups of copies: {groups, after, totals, commits, …}. query: {kind, after, limit}. */
export const copies = asked("/copies");

/** The map as a whole: {pictures, clusters, layout, stale, commits}. */
export const map = (signal) => call("/map", { signal });

/** A tile of the map, with points or counts. query: {commit, where, filter}. */
export const mapTile = (z, x, y, query) => call(`/map/tiles/${z}/${x}/${y}?${new URLSearchParams(query)}`, {});

/** The pictures in a part of the map: {total, ids, pictures}. query: {outline, cluster, where, filter}. */
export const mapPictures = asked("/map/pictures");

/** The answer to a search as a table of a media type, as a Blob. */
export const table = (request, files, type) =>
  call("/search", { method: "POST", headers: { Accept: type }, body: formOf(request, files) }, "blob");

/** The originals of the pictures that a form names, as a Blob. */
export const zip = (form) => call("/zip", { method: "POST", body: form }, "blob");

/** What a removal of files would take and leave. head: the commit of the groups. */
export const review = (head, names) => send("/copies/review", { head, remove: names });

export const remove = (head, names) => send("/copies/remove", { head, remove: names });

/** The labels there are, sorted. */
export const labels = () => call("/labels");

/** What `putLabels` would change: {ids, label}; label: null for none. */
export const reviewLabels = (asked) => send("/labels/review", asked);

export const putLabels = (asked) => send("/labels", asked);

/** Takes back a change that this page has made. */
export const undo = (commit) => send("/undo", { commit });

/** The labels of the promoted model, and what is known of it. */
export const classes = (signal) => call("/classes", { signal });

/** Asks at "/search" or "/classify"; `files` are those that the request's pictures name by {"upload": n}. sent(share)
 * reports their way up. */
export function ask(path, request, files, { signal, sent }) {
  return files.length ? upload(path, formOf(request, files), signal, sent) : send(path, request, signal);
}

function formOf(request, files) {
  const form = new FormData();
  form.append("request", new Blob([JSON.stringify(request)], { type: "application/json" }), "request.json");
  for (const file of files) form.append("picture", file, file.name);
  return form;
}

/** The JPEG that the service makes of a file, as a Blob. */
export const preview = (file) =>
  call("/previews", { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file }, "blob");

export const signIn = (token) => send("/session", { token });

export const signOut = () => call("/session", { method: "DELETE" });

/** Attempts again while the service is busy, starts, or does not answer. waiting({kind, seconds, message}) is called
 * before each pause, of as long as the service says; any other failure, and an abort, is thrown. */
export async function patiently(attempt, { signal, waiting }) {
  for (let tried = 0; ; tried += 1) {
    try {
      return await attempt();
    } catch (failure) {
      const kind = passing(failure);
      if (!kind) throw failure;
      const seconds = failure.wait ?? Math.min(LONGEST, 2 ** tried);
      waiting({ kind, seconds, message: failure.message });
      await pause(seconds, signal);
    }
  }
}

/** Waits; an abort ends it with an AbortError, and a device that is online again ends it early. */
export function pause(seconds, signal) {
  return new Promise((done, fail) => {
    const end = (finish) => {
      clearTimeout(timer);
      removeEventListener("online", awake);
      signal?.removeEventListener("abort", aborted);
      finish();
    };
    const awake = () => end(done);
    const aborted = () => end(() => fail(new DOMException("stopped", "AbortError")));
    const timer = setTimeout(awake, seconds * 1000);
    addEventListener("online", awake);
    if (signal?.aborted) aborted();
    signal?.addEventListener("abort", aborted);
  });
}

function passing(failure) {
  if (failure instanceof Unreachable) return "unreachable";
  if (failure.status === 429) return "busy";
  return failure.status === 503 ? "starting" : null;
}

function send(path, value, signal) {
  const headers = { "Content-Type": "application/json" };
  return call(path, { method: "POST", headers, body: JSON.stringify(value), signal });
}

/** read: "text" for an answer in JSON, or "blob". */
async function call(path, options, read = "text") {
  let response, content;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
    content = await response[response.ok ? read : "text"]();
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw unreachable();
  }
  return content instanceof Blob ? content : answerOf(response.status, content, response.headers.get("Retry-After"));
}

/** As `call`, with the progress that fetch does not have. */
function upload(path, form, signal, sent) {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.upload.addEventListener("progress", (event) => event.lengthComputable && sent(event.loaded / event.total));
    request.addEventListener("abort", () => fail(new DOMException("stopped", "AbortError")));
    request.addEventListener("error", () => fail(unreachable()));
    request.addEventListener("load", () => {
      try {
        done(answerOf(request.status, request.responseText, request.getResponseHeader("Retry-After")));
      } catch (failure) {
        fail(failure);
      }
    });
    signal?.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

function answerOf(status, text, retryAfter) {
  let value = null;
  try {
    value = text ? JSON.parse(text) : {};
  } catch {
    // A proxy's own page, for example; its status says enough.
  }
  if (status >= 200 && status < 300 && value !== null) return value;
  const said = value?.error ?? {};
  const message = said.message ?? `This is not an answer of lookalike (HTTP ${status}). Is a proxy in the way?`;
  const wait = Number.parseFloat(retryAfter);
  const temporary = status === 502 || status === 504; // a proxy whose service restarts
  const after = Number.isFinite(wait) ? wait : null;
  throw new Refusal(temporary ? 503 : status, said.code ?? "unknown", message, after, said.pictures ?? []);
}

function unreachable() {
  const away = navigator.onLine === false;
  return new Unreachable(away ? "This device is offline." : `The service at ${location.host} does not answer.`);
}
