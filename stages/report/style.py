"""The style sheet of the result page: light and dark, screen and paper. CSS only; the markup is in
stages.report.result_pages."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #f6f7f9; --card: #ffffff; --ink: #16191d; --muted: #565e68; --edge: #d9dde3;
  --accent: #2456c6; --tint: #eaf0fb; --note: #7a4300; --note-paper: #fff5e5; --note-edge: #f0d3a4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #101316; --card: #191d22; --ink: #e8eaed; --muted: #a3abb5; --edge: #2e343c;
    --accent: #8fb4ff; --tint: #1c2740; --note: #ffcf87; --note-paper: #2c2212; --note-edge: #5b4620;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
header, main, footer { max-width: 1108px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 36px; padding-bottom: 4px; }
h1 { margin: 0 0 4px; font-size: 1.75rem; font-weight: 650; line-height: 1.25; letter-spacing: -0.01em; }
h1, h2, li, td, figcaption { overflow-wrap: anywhere; }
.summary { margin: 0; color: var(--muted); }
dl.facts { display: flex; flex-wrap: wrap; gap: 4px 28px; margin: 14px 0 0; font-size: 0.875rem; }
dl.facts div { display: flex; gap: 8px; min-width: 0; }
dl.facts dt { color: var(--muted); }
dl.facts dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
code { font: 0.92em ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.notes {
  margin: 20px 0 0; padding: 12px 18px; list-style: none; border: 1px solid var(--note-edge); border-radius: 10px;
  background: var(--note-paper); color: var(--note);
}
.card {
  display: grid; grid-template-columns: 264px minmax(0, 1fr); margin: 20px 0; overflow: hidden;
  border: 1px solid var(--edge); border-radius: 14px; background: var(--card);
}
.query { padding: 20px; background: var(--tint); }
.matches {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(168px, 224px)); gap: 28px 24px;
  margin: 0; padding: 20px 24px; list-style: none;
}
.nothing { margin: 0; padding: 20px 24px; align-self: center; color: var(--muted); }
figure { margin: 0; }
img, .blank {
  display: block; width: 100%; max-width: 224px; height: auto; aspect-ratio: 1; object-fit: contain;
  border: 1px solid var(--edge); border-radius: 8px;
}
.blank { display: grid; place-items: center; color: var(--muted); font-size: 0.875rem; }
.heading {
  display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 7px; max-width: 224px; margin: 0 0 8px;
  font-size: 1rem; font-weight: 600; font-variant-numeric: tabular-nums;
}
.heading small { color: var(--muted); font-size: 0.8125rem; font-weight: 400; }
.heading .same { margin-left: auto; color: var(--accent); }
.query .heading { color: var(--accent); }
.sources { margin: 8px 0 0; padding: 0; list-style: none; font-size: 0.8125rem; line-height: 1.4; color: var(--muted); }
.sources li + li { margin-top: 4px; }
.query .sources { color: var(--ink); }
details { margin-top: 4px; font-size: 0.8125rem; color: var(--muted); }
summary { cursor: pointer; color: var(--accent); }
summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
h2 { margin: 36px 0 10px; font-size: 1.15rem; font-weight: 650; }
.table { overflow-x: auto; border: 1px solid var(--edge); border-radius: 14px; background: var(--card); }
table { width: 100%; border-collapse: collapse; font-size: 0.875rem; }
th, td { padding: 9px 18px; text-align: left; vertical-align: top; }
th { color: var(--muted); font-weight: 500; }
tr + tr td, tbody tr td { border-top: 1px solid var(--edge); }
footer { padding-top: 12px; padding-bottom: 44px; color: var(--muted); font-size: 0.8125rem; }
@media (max-width: 640px) {
  header, main, footer { padding-left: 16px; padding-right: 16px; }
  .card { grid-template-columns: minmax(0, 1fr); }
  .query figure { display: grid; grid-template-columns: 96px minmax(0, 1fr); gap: 0 16px; }
  .query .heading { grid-column: 1 / -1; }
  .query figcaption .sources { margin-top: 0; }
  .matches { grid-template-columns: repeat(auto-fill, minmax(128px, 1fr)); gap: 18px; padding: 18px; }
}
@media print {
  body { background: none; }
  .card { break-inside: avoid; }
}
"""
