/* What is drawn on the map: the colours of clusters, small pictures of counts, and texts. */

export const GRID = 128; // cells of a tile each way, as the service has them

const scheme = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => scheme.matches;

/** That of a cluster, by its number; grey for none. */
export const colour = (cluster) => (cluster < 0 ? "#8b939e" : `hsl(${Math.round((cluster * 137.508) % 360)} 60% ${isDark() ? 64 : 44}%)`);

/** A small picture of cells [number, pictures, cluster], the more opaque the more pictures they have. */
export function bitmapOf(cells) {
  const bitmap = new OffscreenCanvas(GRID, GRID);
  const context = bitmap.getContext("2d");
  const most = Math.log1p(Math.max(...cells.map(([, pictures]) => pictures)));
  for (const [cell, pictures, cluster] of cells) {
    context.globalAlpha = 0.3 + (0.7 * Math.log1p(pictures)) / most;
    context.fillStyle = colour(cluster);
    context.fillRect(cell % GRID, Math.floor(cell / GRID), 1, 1);
  }
  return bitmap;
}

/** A text with a rim, in the middle of a line. */
export function label(context, text, left, top) {
  const shown = text.length > 26 ? `${text.slice(0, 25)}…` : text;
  context.textAlign = "center";
  context.lineWidth = 4;
  context.strokeStyle = isDark() ? "#191d22" : "#ffffff";
  context.strokeText(shown, left, top);
  context.fillStyle = isDark() ? "#e8eaed" : "#16191d";
  context.fillText(shown, left, top);
}
