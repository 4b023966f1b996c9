/* Choices that this browser remembers about the page, where it has storage for it; without, they hold until it is closed. */

const here = new Map();

/** Whether a choice was made. */
export function chosen(name) {
  try {
    return localStorage.getItem(name) === "yes";
  } catch {
    return here.has(name);
  }
}

export function choose(name, on) {
  if (on) here.set(name, true);
  else here.delete(name);
  try {
    if (on) localStorage.setItem(name, "yes");
    else localStorage.removeItem(name);
  } catch {
    // A private window, for example.
  }
}
