/* Pictures that were given to this page, by the hash of their bytes: kept in this browser for a day, so that the address
 * of a search with one works after a reload. The service keeps none. */

const DAY = 24 * 60 * 60 * 1000;
const MOST = 40; // pictures kept
const STORE = "pictures";

const here = new Map(); // key -> {key, name, file, at, preview}
let opened = null;

/** Keeps a file and returns its key, of 32 hexadecimal digits. Throws if the file cannot be read, such as a folder. */
export async function keep(file) {
  const bytes = await file.arrayBuffer();
  const key = await keyOf(bytes);
  if (!here.has(key)) {
    const name = file.name || "picture";
    const copy = new File([bytes], name, { type: file.type });
    const entry = { key, name, file: copy, at: Date.now() };
    remember(entry);
    await inStore("readwrite", (store) => store.put(entry));
    await tidy();
  }
  return key;
}

/** The picture of a key: {name, file, preview}, preview a URL for <img>; null if this browser does not have it. */
export async function find(key) {
  if (here.has(key)) return here.get(key);
  const entry = await inStore("readonly", (store) => store.get(key));
  return entry && Date.now() - entry.at < DAY ? remember(entry) : null;
}

/** Forgets all of them, here and in the browser. */
export async function forget() {
  for (const { preview } of here.values()) URL.revokeObjectURL(preview);
  here.clear();
  await inStore("readwrite", (store) => store.clear());
}

function remember(entry) {
  const kept = { ...entry, preview: URL.createObjectURL(entry.file) };
  here.set(entry.key, kept);
  return kept;
}

async function keyOf(bytes) {
  const secure = globalThis.crypto?.subtle; // absent without TLS, as behind a proxy on http://
  const digest = secure
    ? new Uint8Array(await secure.digest("SHA-256", bytes))
    : crypto.getRandomValues(new Uint8Array(16));
  return Array.from(digest.slice(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Removes those older than a day, and the oldest of more than MOST. */
async function tidy() {
  const entries = (await inStore("readonly", (store) => store.getAll())) ?? [];
  const newest = entries.sort((a, b) => b.at - a.at);
  const old = newest.filter((entry, place) => place >= MOST || Date.now() - entry.at >= DAY);
  for (const { key } of old) await inStore("readwrite", (store) => store.delete(key));
}

/** The result of one request, or undefined where the browser has no storage for this page, as in a private window. */
async function inStore(mode, work) {
  try {
    opened ??= openStore();
    const store = (await opened).transaction(STORE, mode).objectStore(STORE);
    return await result(work(store));
  } catch {
    return undefined;
  }
}

function openStore() {
  const request = indexedDB.open("lookalike", 1);
  request.addEventListener("upgradeneeded", () => request.result.createObjectStore(STORE, { keyPath: "key" }));
  return result(request);
}

function result(request) {
  return new Promise((done, fail) => {
    request.addEventListener("success", () => done(request.result));
    request.addEventListener("error", () => fail(request.error));
    request.addEventListener("blocked", () => fail(new Error("blocked")));
  });
}
