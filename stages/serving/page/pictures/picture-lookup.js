/* What is known of a picture of the question: its name, and where the browser finds it. */

import * as service from "../kit/service-client.js";
import * as uploads from "./upload-store.js";
import { basename } from "../kit/text-format.js";

/** {name, preview, original, rendered, width, height, inLibrary, pending}; rendered() gives, as a promise, the URL of a
 * JPEG that the service makes, for a picture that the browser cannot show. picture: of the state. told: the answer's words
 * on it, undefined before there is an answer. fit: of the model; with "crop" thumbnails are only the middles of pictures,
 * on which a region cannot be drawn. */
export async function lookUp(picture, told, fit) {
  const facts = { width: told?.width, height: told?.height, inLibrary: Boolean(told?.known), pending: !told };
  if (picture.kind === "upload") {
    const kept = await uploads.find(picture.value);
    const preview = kept?.preview;
    const name = kept?.name ?? "a picture added earlier";
    return { name, preview, original: preview, rendered: () => renderedOf(kept), ...facts };
  }
  const id = picture.kind === "id" ? picture.value : told?.known && told.id;
  const original = id && `/originals/${encodeURIComponent(id)}`;
  const thumbnail = id && `/images/${encodeURIComponent(id)}`;
  const preview = fit === "crop" ? original : thumbnail;
  const rendered = async () => original?.replace("originals", "previews");
  return { name: nameOf(picture, told), preview, original, rendered, ...facts };
}

/** Makes it once; undefined where it cannot be made, for a reason that the answer to the question gives. */
function renderedOf(kept) {
  const making = () => service.patiently(() => service.preview(kept.file), { waiting: () => {} });
  const made = (jpeg) => (kept.preview = URL.createObjectURL(jpeg));
  return (kept.rendered ??= making().then(made, () => undefined));
}

function nameOf(picture, told) {
  if (told?.name) return basename(told.name);
  return picture.kind === "url" ? picture.value : "…";
}
