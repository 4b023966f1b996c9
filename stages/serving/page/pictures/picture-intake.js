/* Pictures that were dropped, pasted, chosen or named by address, on their way into a question. */

import * as address from "../kit/address.js";
import { complain } from "../kit/notices.js";
import * as uploads from "./upload-store.js";
import { bytes, count } from "../kit/text-format.js";

/** The pictures of a question made of files and addresses, after `before`; null if one cannot be asked with, which the
 * page then says. limits: the service's, undefined while they are not known. */
export async function arrived({ files, addresses }, before, limits) {
  try {
    const pictures = [...before, ...(await kept(files, limits)), ...addresses.flatMap(named)];
    if (limits && pictures.length > limits.pictures) {
      throw new Error(`A question takes up to ${count(limits.pictures, "picture")}; these are ${pictures.length}.`);
    }
    return pictures;
  } catch (failure) {
    complain(failure.message);
    return null;
  }
}

async function kept(files, limits) {
  const large = limits && files.find((file) => file.size > limits.bytes);
  if (large) throw new Error(`${large.name} has ${bytes(large.size)}; the service takes up to ${bytes(limits.bytes)}.`);
  const pictures = [];
  for (const file of files) pictures.push(address.picture("upload", await keptOne(file)));
  return pictures;
}

async function keptOne(file) {
  try {
    return await uploads.keep(file);
  } catch {
    throw new Error(`${file.name} cannot be read by this browser. If it is a folder, choose the pictures in it.`);
  }
}

function named(given) {
  const own = address.ownPictures(given);
  if (own.length) return own;
  if (/^https?:\/\/[^/\s]/.test(given)) return [address.picture("url", given)];
  throw new Error(`“${given}” is not a web address: one begins with https:// or http://.`);
}
