/* What is known of a picture of the question: its name, and where the browser finds it. */

import * as uploads from "./upload-store.js";
import { basename } from "../kit/text-format.js";

/** picture: of the state. told: the answer's words on it, undefined before there is an answer. fit: of the model; with
 * "crop" thumbnails are only the middles of pictures, on which a region cannot be drawn. */
export async function lookUp(picture, told, fit) {
  const facts = { width: told?.width, height: told?.height, inLibrary: Boolean(told?.known), pending: !told };
  if (picture.kind === "upload") {
    const kept = await uploads.find(picture.value);
    const preview = told?.preview ?? kept?.preview;
    return { name: kept?.name ?? "a picture given earlier", preview, original: kept?.preview, ...facts };
  }
  const id = picture.kind === "id" ? picture.value : told?.known && told.id;
  const original = id && `/originals/${encodeURIComponent(id)}`;
  const thumbnail = id && `/images/${encodeURIComponent(id)}`;
  const preview = told?.preview ?? (fit === "crop" ? original : thumbnail);
  return { name: nameOf(picture, told), preview, original: original ?? preview, ...facts };
}

function nameOf(picture, told) {
  if (told?.name) return basename(told.name);
  return picture.kind === "url" ? picture.value : "…";
}
