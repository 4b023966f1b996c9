/* What the page says: the notice in place of pictures (progress, refusals, first steps), the passing message, and the
 * live region for screen readers. */

import { button, byId, copying, icon, make } from "./elements.js";
import { share } from "./text-format.js";

const SLOW = 400; // milliseconds

/** Tells screen readers. */
export function tell(text) {
  byId("live").textContent = "";
  requestAnimationFrame(() => (byId("live").textContent = text));
}

/** A message above the page, until it is closed or another one comes. */
export function complain(text) {
  const place = byId("message");
  place.replaceChildren(make("div", { class: "message", role: "alert" }, icon("warning"), make("p", {}, text), closing(place)));
}

/** The button that closes the message in a place. */
export const closing = (place) => button("Close the message", "close", () => place.replaceChildren(), { quiet: true });

/** A notice in place of pictures. kind: "wait", "refused" or "hint". share: of progress, null if it is not known. The
 * title of one that waits is said again only if it changes, so that a countdown does not interrupt. */
export function notice(kind, title, text, { share: done = null, commands = [], actions = [] } = {}) {
  const place = byId("notice");
  place.hidden = false;
  const said = `${title}\n${kind === "wait" ? "" : text}`;
  if (place.dataset.said !== said) tell(`${title}. ${text}`);
  place.dataset.said = said;
  place.className = kind;
  place.replaceChildren(
    kind === "wait" ? progress(done) : icon(kind === "refused" ? "warning" : "picture"),
    make("h2", {}, title),
    make("p", {}, text),
    ...commands.map(commandLine),
    make("div", { class: "actions" }, actions),
  );
  return place;
}

export function clearNotice() {
  const place = byId("notice");
  place.hidden = true;
  delete place.dataset.said;
  place.replaceChildren();
}

const progress = (done) =>
  done === null
    ? make("progress", { "aria-label": "In progress" })
    : make("progress", { "aria-label": "Uploaded", value: done, max: 1 });

/** A command to type, with a button that copies it. */
export const commandLine = (line) => make("div", { class: "command" }, make("code", {}, line), copying("Copy", line));

/** Runs what may take long, and says so if it does. run(waiting) calls waiting(reason) with each reason to wait. */
export async function slowly(title, text, run, stop) {
  const slow = setTimeout(() => notice("wait", title, text), SLOW);
  try {
    return await run((reason) => {
      clearTimeout(slow);
      waiting(reason, stop);
    });
  } finally {
    clearTimeout(slow);
  }
}

/** The notice of pictures of which a share is sent. */
export const sending = (part) => part < 1 && notice("wait", "Uploading", share(part), { share: part });

/** The words for a reason to wait: {kind, seconds, message} of the service or of its standing. */
export function waiting({ kind, seconds, message }, stop) {
  const again = seconds === undefined ? "Trying again" : `Trying again in ${Math.max(1, Math.round(seconds))} s`;
  const actions = stop ? [button("Stop waiting", "close", stop)] : [];
  if (kind === "unreachable") {
    const advice = "Is lookalike serve still running? This page continues as soon as it answers.";
    notice("wait", "No connection", `${message} ${again}. ${advice}`, { actions });
  } else if (kind === "busy") notice("wait", "The service is busy", `${message} ${again}.`, { actions });
  else if (kind === "empty") {
    const advice = "Add pictures in a terminal. They will appear here by themselves.";
    notice("hint", "The library is empty", advice, { commands: ["lookalike add FOLDER"] });
  } else if (kind === "unpromoted") {
    const advice = "Train a model and promote it in a terminal. This page then continues by itself.";
    notice("hint", "No model is promoted", advice, { commands: ["lookalike classify promote"] });
  } else if (kind === "failed") {
    notice("refused", "The service cannot answer", `${message} This page continues once that is fixed.`);
  } else notice("wait", "The service is starting", message || "The model is loading.", { actions });
}
