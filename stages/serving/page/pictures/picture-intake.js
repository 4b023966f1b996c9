/* Pictures that were dropped, pasted, chosen or named by address, on their way into a question. */

import * as address from "../kit/address.js";
import * as uploads from "./upload-store.js";
import { bytes, count } from "../kit/text-format.js";

const FORM = 1 << 14; // bytes of a request beside its files

/** The pictures of a question made of files and addresses, after `before`, and the problems with those that cannot be
 * asked with, in words. limits: the service's, undefined while they are not known. */
export async function arrived({ files, addresses }, before, limits) {
  const problems = [];
  const pictures = [...before, ...(await kept(files, limits, problems)), ...addresses.flatMap((each) => named(each, problems))];
  if (limits && pictures.length > limits.pictures) {
    const most = count(limits.pictures, "picture");
    return { pictures: before, problems: [`A question takes up to ${most}; these are ${pictures.length}.`] };
  }
  return { pictures, problems };
}

/** Files go to the service together, so their sizes count together. */
async function kept(files, limits, problems) {
  const pictures = [];
  let room = (limits?.bytes ?? Infinity) - FORM;
  for (const file of files) {
    if (file.size > room) {
      problems.push(`${file.name} has ${bytes(file.size)}; a question takes up to ${bytes(limits.bytes)} in all.`);
      continue;
    }
    try {
      pictures.push(address.picture("upload", await uploads.keep(file)));
      room -= file.size;
    } catch {
      problems.push(`${file.name} cannot be read by this browser. If it is a folder, choose the pictures in it.`);
    }
  }
  return pictures;
}

function named(given, problems) {
  const own = address.ownPictures(given);
  if (own.length) return own;
  if (/^https?:\/\/[^/\s]/.test(given)) return [address.picture("url", given)];
  problems.push(`“${given}” is not a web address. Web addresses begin with https:// or http://.`);
  return [];
}
