/* One question, from the page's state to the service's answer. Knows no elements. */

import { options } from "../kit/address.js";
import * as service from "../kit/service-client.js";
import { classifying } from "../kit/service-status.js";
import * as uploads from "../pictures/upload-store.js";

const GONE =
  "This picture was added in another browser, or more than a day ago; the service keeps none. Drop, paste or choose it again.";

/** The answer to a state with pictures. waiting(reason) is called while the service is not ready, busy or away, and
 * sent(share) while pictures are on their way. Throws Refusal with the service's words. */
export const ask = (state, work) => answer("/search", searchOf(state), state, work);

/** The same for labels. */
export const classify = (state, work) => answer("/classify", labelsOf(state), state, { ...work, part: classifying });

/** The answer to a search as a table of a media type, as a Blob. */
export const table = async (state, type) => service.table(searchOf(state), await filesOf(state.pictures), type);

async function answer(path, request, state, { standing, signal, waiting, sent, part }) {
  const files = await filesOf(state.pictures);
  return standing.answer(() => service.ask(path, request, files, { signal, sent }), { signal, waiting, part });
}

async function filesOf(pictures) {
  const asked = [...pictures.keys()].filter((place) => pictures[place].kind === "upload");
  const kept = await Promise.all(asked.map((place) => uploads.find(pictures[place].value)));
  const gone = asked.filter((_, at) => !kept[at]);
  const reasons = gone.map((picture) => ({ picture, message: GONE }));
  if (gone.length) throw new service.Refusal(404, service.UPLOAD_GONE, GONE, null, reasons);
  return kept.map((entry) => entry.file);
}

function picturesOf(state) {
  let uploaded = 0;
  return state.pictures.map(({ kind, value, box }) => ({
    [kind]: kind === "upload" ? uploaded++ : value,
    ...(box && { box }),
  }));
}

function labelsOf(state) {
  const request = { pictures: picturesOf(state) };
  if (state.top) request.top = state.top;
  return request;
}

function searchOf(state) {
  const { combine, text, without } = state;
  return { pictures: picturesOf(state), combine, ...(text && { text }), ...(without && { without }), ...options(state) };
}
