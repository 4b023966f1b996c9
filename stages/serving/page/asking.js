/* One question, from the page's state to the service's answer. Knows no elements. */

import * as service from "./service.js";
import * as uploads from "./uploads.js";

/** The question has a picture that this browser does not have, or no longer. */
export class Gone extends Error {}

/** The answer to a state with pictures. waiting(reason) is called while the service is not ready, busy or away, and
 * sent(share) while pictures are on their way. Throws Gone, and Refusal with the service's words. */
export async function ask(state, { standing, signal, waiting, sent }) {
  const files = await filesOf(state.pictures);
  await standing.settled(signal, waiting);
  const request = requestOf(state);
  return service.patiently(() => service.search(request, files, { signal, sent }), { signal, waiting });
}

async function filesOf(pictures) {
  const asked = pictures.filter((each) => each.kind === "upload");
  const kept = await Promise.all(asked.map((each) => uploads.find(each.value)));
  if (!kept.every(Boolean)) throw new Gone();
  return kept.map((entry) => entry.file);
}

function requestOf(state) {
  let uploaded = 0;
  const pictures = state.pictures.map(({ kind, value, box }) => ({
    [kind]: kind === "upload" ? uploaded++ : value,
    ...(box && { box }),
  }));
  const request = { pictures, combine: state.combine };
  if (state.k) request.k = state.k;
  if (state.metric) request.metric = state.metric;
  if (state.filter) request.filter = state.filter;
  if (state.most !== null) request.max_distance = state.most;
  if (state.exact) request.exact = true;
  return request;
}
