/* The ways from what is shown to what is asked next, as addresses and as steps in the history. */

import * as address from "./address.js";
import * as navigation from "./browser-history.js";

export const state = () => address.read(location.search);

/** The address of the search for pictures similar to one of the library, with the options as they are. */
export const searchOf = (id) => address.write({ ...address.asking(state(), [address.picture("id", id)]), view: "" });

/** The address of the same pictures in another view. */
export const viewOf = (view) => address.write({ ...state(), view, show: null, folder: "" }) || "/";

export const folderOf = (path) => address.write({ ...address.NOTHING, folder: path }) || "/";

/** Asks with these pictures, and words, with the options as they are; `replace` in place of the question that is shown. */
export const ask = (pictures, words = {}, replace = false) =>
  navigation.go(address.write(address.asking(state(), pictures, words)), { replace });

/** Asks with other pictures, and with the words as they are. */
export const change = (pictures, replace = false) => ask(pictures, state(), replace);

/** Asks with words, in a search: {text, without}. pictures: those that are asked about with them. */
export const say = (words, pictures = []) =>
  navigation.go(address.write({ ...address.asking(state(), pictures, words), view: "" }));

/** Adds a picture of the library to the question. */
export const add = (id) => change([...state().pictures, address.picture("id", id)]);

/** Asks with other options. */
export const set = (changed) => navigation.go(address.write({ ...state(), ...changed, show: null }));

/** Lists the pictures of other filters, without a question. */
export const list = (changed) => navigation.go(address.write({ ...address.NOTHING, ...changed }));

/** Opens the larger view of a picture; `replace` if it is open already. null closes it. */
export function show(id, replace = false) {
  navigation.go(address.write({ ...state(), show: id }), { replace, over: !replace });
}

/** Leaves the question, and stays in the view. */
export const home = () => navigation.go(address.write({ ...address.NOTHING, view: state().view }));

export const turn = (view) => navigation.go(viewOf(view).replace(/^\/$/, ""));
