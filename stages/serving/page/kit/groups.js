/* Items in groups. Map.groupBy would do, but browsers have it only since 2024, and older ones would show no answer. */

/** The items with equal keys together, in the order of the first of each group. */
export function grouped(items, keyOf) {
  const found = new Map();
  for (const each of items) {
    const key = keyOf(each);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(each);
  }
  return [...found.values()];
}
