/* Numbers, sizes and names as people read them. */

const LOCALE = "en";
const whole = new Intl.NumberFormat(LOCALE);

export const number = (value) => whole.format(value);

/** "1 picture", "12 pictures". */
export const count = (value, one, many = `${one}s`) => `${whole.format(value)} ${value === 1 ? one : many}`;

/** A distance with four digits, as on result sheets. */
export const distance = (value) => (value === 0 ? "0" : value.toPrecision(4));

/** A number of a file or a picture, with at most four digits behind the point. */
export const measure = (value) => new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 4, useGrouping: Math.abs(value) >= 10_000 }).format(value);

/** "48.21° N"; ends: the letters of positive and negative degrees. */
export function degrees(value, [positive, negative]) {
  const size = Number(Math.abs(value).toFixed(3));
  return `${size}°${size ? ` ${value > 0 ? positive : negative}` : ""}`;
}

/** "950", "12K". */
export const brief = (value) => new Intl.NumberFormat(LOCALE, { notation: "compact" }).format(value);

export const percent = (value) => `${value >= 99.95 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;

/** A share of 0 to 1 in per cent, which says 100 of nothing less than all of it. */
export const share = (value) => (value === 1 ? "100 %" : `${(Math.floor(value * 1000) / 10).toFixed(1)} %`);

/** A probability in per cent, which says neither 100 nor 0 of anything between. */
export function likely(value) {
  if (value === 1 || value === 0) return `${value * 100} %`;
  if (value >= 0.9995) return "> 99.9 %";
  return value < 0.0005 ? "< 0.1 %" : `${(value * 100).toFixed(1)} %`;
}

export function bytes(size) {
  if (size < 1000) return `${size} bytes`;
  const power = Math.min(3, Math.floor(Math.log10(size) / 3));
  return `${(size / 1000 ** power).toFixed(1)} ${["", "kB", "MB", "GB"][power]}`;
}

export const seconds = (value) => (value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`);

/** A reason of the service as a sentence; a name at its beginning stays as it is. */
export const sentence = (reason) =>
  reason.replace(/^[a-z]+ /, (word) => word[0].toUpperCase() + word.slice(1)).replace(/[^.!?]$/, "$&.");

/** The last part of a path. */
export const basename = (path) => path.replace(/\/+$/, "").split("/").pop() || path;

/** The folder that a path lies in; "" at the top. */
export const folderOf = (path) => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");

const TITLES = { taken: "Date taken", bytes: "File size", width: "Width in pixels", height: "Height in pixels", aspect: "Width : height" };

/** The name of a column as a title. */
export const title = (column) => TITLES[column] ?? column[0].toUpperCase() + column.slice(1).replaceAll("_", " ");

const SCALES = {
  brightness: "0 is black, 1 is white",
  contrast: "0 is one shade, 1 is from black to white",
  sharpness: "0 is without sharp edges; sharp photographs have 0.35 to 0.65",
};

/** What the numbers of a column mean, undefined where its title says enough. */
export const scale = (column) => SCALES[column];

/** The words for numbers of these columns, each with the number that it ends at: those of `lookalike quality`, and between. */
const GRADES = {
  brightness: [[0.15, "very dark"], [0.4, "dark"], [0.6, "medium"], [0.88, "bright"], [Infinity, "very bright"]],
  contrast: [[0.06, "none"], [0.3, "low"], [0.7, "medium"], [Infinity, "high"]],
  sharpness: [[0.2, "very soft"], [0.35, "soft"], [Infinity, "sharp"]],
};

/** A value of a column; null stands for what is not known. */
export function shown(column, value) {
  if (value === null) return column === "folder" ? "Outside folders" : "Unknown";
  if (typeof value === "boolean") return value ? "Yes" : "No";
  if (typeof value !== "number") return value;
  if (column === "bytes") return bytes(value);
  const [, grade] = GRADES[column]?.find(([end]) => value < end) ?? [];
  return grade ? `${grade} (${measure(value)})` : measure(value);
}

/** "640 × 427", "" where the size is not known. */
export const pixels = ({ width, height }) => (width && height ? `${width} × ${height}` : "");

/** "2019-08-03 16:30" of a camera's date. */
export const date = (taken) => taken?.slice(0, 16).replace("T", " ");
