/* The view of the library: loads folders, keeps what was loaded so that coming back to one is immediate. */

import * as browse from "./folder-grid.js";
import { isList } from "../kit/address.js";
import { make } from "../kit/elements.js";
import { menu } from "../kit/download-menu.js";
import * as moves from "../kit/query-links.js";
import * as notices from "../kit/notices.js";
import * as service from "../kit/service-client.js";
import { olderThan } from "../kit/service-status.js";
import { basename, count } from "../kit/text-format.js";

const ORDERS = { name: "Name, A to Z", "-name": "Name, Z to A", "-taken": "Newest first", taken: "Oldest first" };

export class Folders {
  #kept = new Map(); // address of a folder or list -> browse.Folder
  #shown = null; // one of its values

  /** standing: a Standing. failed(failure): shows why a further page could not be loaded. */
  constructor(standing, failed) {
    this.standing = standing;
    this.failed = failed;
  }

  heading = "#browse .heading > *"; // what takes the focus
  tiles = "browse"; // the id of what holds the pictures

  /** Whether the service has a newer index or model than the shown folder comes from. */
  isOld(status) {
    return olderThan(status, this.#shown?.commits);
  }

  /** The pictures loaded so far, for the larger view, each once. */
  get pictures() {
    return [...new Map(this.#shown?.pictures.map((each) => [each.id, each])).values()];
  }

  /** Shows the next page of the folder; null where there is none. */
  get more() {
    return this.#shown?.complete === false ? this.#shown.more : null;
  }

  forget() {
    this.#kept.clear();
  }

  /** Shows the folder of a state. signal: ends what is under way. */
  async show(state, signal) {
    this.#shown = null;
    document.title = `${state.folder ? `${basename(state.folder)} · ` : ""}lookalike`;
    const list = isList(state);
    const query = list && listOf(state);
    const load = (path, after, limit) => {
      const asked = { limit, ...(after && { after }) };
      const page = () => (list ? service.pictures({ ...query, ...asked }, signal) : service.library({ folder: path, ...asked }, signal));
      return service.patiently(page, { signal, waiting: notices.waiting });
    };
    const key = list ? JSON.stringify([state.folder, query]) : state.folder;
    const folder = this.#kept.get(key) ?? (await this.#first(state.folder, load, signal));
    folder.load = load;
    this.#kept.set(key, folder);
    this.#shown = folder;
    browse.show(folder, {
      cover: (path, limit) => this.#cover(path, limit, signal),
      whole: state.folder || list ? null : this.standing.current?.pictures,
      list,
      tools: [orders(state), menu(this.#downloads(list ? query : listOf(state), folder))],
      loaded: (next) => next().then(cleared, (failure) => void this.failed(failure)),
    });
  }

  #downloads(query, { total }) {
    const { zip } = this.standing.current ?? {};
    const file = (path, more) => `${path}?${new URLSearchParams({ ...query, ...more })}`;
    return [
      { words: "Table (CSV)", href: file("/table", { format: "csv" }) },
      { words: "Table (Parquet)", href: file("/table", { format: "parquet" }) },
      { words: "Pictures (zip)", href: file("/zip"), why: zip && total > zip.files && `more than ${count(zip.files, "file")}; filter them first` },
    ];
  }

  /** A folder with its first page. At the top, folders that hold nothing but one folder are passed over. */
  #first(path, load, signal) {
    return notices.slowly("Loading", "The library is loading.", async (waiting) => {
      const { commits } = await this.standing.settled(signal, waiting);
      let folder = new browse.Folder(path, load);
      await folder.next();
      while (!path && folder.complete && !folder.pictures.length && folder.folders.length === 1) {
        const [{ name }] = folder.folders;
        folder = new browse.Folder(folder.path ? `${folder.path}/${name}` : name, load);
        await folder.next();
      }
      folder.commits = commits;
      return folder;
    });
  }

  /** The first pictures of a folder or of the first of its folders; none where they cannot be had now. */
  async #cover(path, limit, signal) {
    try {
      const page = await service.library({ folder: path, limit }, signal);
      const [below] = page.folders;
      return page.pictures.length || !below ? page.pictures : await this.#cover(`${path}/${below.name}`, limit, signal);
    } catch {
      return []; // a folder keeps its icon
    }
  }
}

/** What the service is asked for the list of a state. */
const listOf = ({ where, filter, folder, sort }) => {
  const query = { where, filter: filter || (folder && `${folder}/`), sort };
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value));
};

/** The choice of the order; without one, folders are shown. */
function orders(state) {
  const filtered = state.where || state.filter;
  const [kinds, chosen] = filtered ? [ORDERS, state.sort || "name"] : [{ "": "Folders", ...ORDERS }, state.sort];
  const choices = Object.entries(kinds).map(([value, words]) => make("option", { value, selected: value === chosen }, words));
  const choose = (event) => moves.set({ sort: event.target.value });
  return make("label", { class: "order" }, "Sort by ", make("select", { on: { change: choose } }, choices));
}

function cleared(pictures) {
  notices.clearNotice();
  return pictures;
}
