/* A filter in the words of SQL's WHERE as clauses that the page can show and change: values of a column, a range of one,
 * files of which a column is not known, a box on the map, and any other text as it is. Knows no elements. */

const NAME = String.raw`("(?:[^"]|"")+"|[a-z_]\w*)`;
const VALUE = String.raw`((?:date |timestamp )?'(?:[^']|'')*'|[-+]?[\d.]+(?:e[-+]?\d+)?|true|false)`;
const pattern = (text) => new RegExp(`^${text.replaceAll(" ", String.raw`\s+`).replaceAll("~", String.raw`\s*`)}$`, "is");
const ONE = pattern(`${NAME}~=~${VALUE}`);
const LIST = pattern(`${NAME} in~\\((.*)\\)`);
const UNKNOWN = pattern(`${NAME} is null`);
const BETWEEN = pattern(`${NAME} between ${VALUE} and ${VALUE}`);
const BOUND = pattern(`${NAME}~(>=|<=)~${VALUE}`);
const NAMED = pattern(String.raw`(name|anywhere) ilike '%((?:[^']|'')*)%' escape '\\'`);
const TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]|[^\s()'"]+|\s+|./g;
const PLACE = ["latitude", "longitude"];

/** The clauses of a filter: {column, values}, {column, unknown}, {column, from, to} with null for an open end,
 * {name: a part of names}, {anywhere: a part of paths or texts}, {place: {south, north, west, east}} or {text}; each as it is written, as source. */
export function read(where) {
  const found = parts(where ?? "").map((source) => ({ ...clause(source), source })).reduce(joined, []);
  const box = PLACE.map((name) => found.find(({ column, from, to }) => column === name && from != null && to != null));
  if (!box.every(Boolean)) return found;
  const [{ from: south, to: north }, { from: west, to: east }] = box;
  return [...found.filter((each) => !box.includes(each)), { place: { south, north, west, east } }];
}

/** Clauses with one more: two bounds of a column are one range. */
function joined(found, each) {
  const half = found.find(({ column, from, to }) => column === each.column && ((from === null && each.to === null) || (to === null && each.from === null)));
  if (!half) return [...found, each];
  const range = { column: each.column, from: half.from ?? each.from, to: half.to ?? each.to };
  return found.map((one) => (one === half ? range : one));
}

/** The filter of clauses; "" without any. */
export const write = (clauses) => clauses.map(sql).join(" AND ");

/** The clauses without those on a column, and with these instead. */
export const replaced = (clauses, column, ...others) => [...clauses.filter((each) => each.column !== column), ...others];

/** A part of names in a filter: what LIKE would take for a wildcard stands for itself. */
export const containing = (column, text) =>
  `${identifier(column)} ILIKE ${literal(`%${text.replace(/[\\%_]/g, "\\$&")}%`)} ESCAPE '\\'`;

function sql({ source, column, values, unknown, from, to, name, anywhere, place }) {
  if (source) return source;
  if (anywhere !== undefined) return containing("anywhere", anywhere);
  if (name !== undefined) return containing("name", name);
  if (place) return `latitude BETWEEN ${place.south} AND ${place.north} AND longitude BETWEEN ${place.west} AND ${place.east}`;
  const quoted = identifier(column);
  if (unknown) return `${quoted} IS NULL`;
  if (values) return values.length === 1 ? `${quoted} = ${literal(values[0])}` : `${quoted} IN (${values.map(literal).join(", ")})`;
  if (from === null || to === null) return `${quoted} ${from === null ? "<=" : ">="} ${literal(from ?? to)}`;
  return `${quoted} BETWEEN ${literal(from)} AND ${literal(to)}`;
}

const identifier = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
const literal = (value) => (typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value).toUpperCase());

/** The conditions that a filter joins by AND; all of it is one if it joins some by OR. */
function parts(where) {
  const found = [""];
  let depth = 0;
  let between = false;
  for (const [token] of where.matchAll(TOKEN)) {
    depth += token === "(" ? 1 : token === ")" ? -1 : 0;
    const word = depth ? "" : token.toUpperCase();
    if (word === "OR") return [`(${where.trim()})`];
    if (word === "BETWEEN") between = true;
    if (word === "AND" && !between) found.push("");
    else found[found.length - 1] += token;
    if (word === "AND") between = false;
  }
  return found.map((each) => each.trim()).filter(Boolean);
}

function clause(text) {
  let found;
  if ((found = NAMED.exec(text))) return { [found[1].toLowerCase()]: found[2].replaceAll("''", "'").replace(/\\([\\%_])/g, "$1") };
  if ((found = ONE.exec(text))) return { column: column(found[1]), values: [value(found[2])] };
  if ((found = LIST.exec(text)) && pattern(`~${VALUE}~(,~${VALUE}~)*`).test(found[2])) {
    return { column: column(found[1]), values: [...found[2].matchAll(new RegExp(VALUE, "gi"))].map(([each]) => value(each)) };
  }
  if ((found = UNKNOWN.exec(text))) return { column: column(found[1]), unknown: true };
  if ((found = BETWEEN.exec(text))) return { column: column(found[1]), from: value(found[2]), to: value(found[3]) };
  if ((found = BOUND.exec(text))) {
    const [, name, sign, bound] = found;
    return { column: column(name), from: sign === ">=" ? value(bound) : null, to: sign === "<=" ? value(bound) : null };
  }
  return { text };
}

const column = (name) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase());

function value(text) {
  if (text.endsWith("'")) return text.slice(text.indexOf("'") + 1, -1).replaceAll("''", "'");
  return /^(true|false)$/i.test(text) ? text.toLowerCase() === "true" : Number(text);
}
