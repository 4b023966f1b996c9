"""The report of an evaluation as one self-contained HTML file: measures, labels, confusions, calibration, what is left
out.

Takes the values of stages.quality.evaluation; computes nothing. The page runs no scripts, and its policy lets it load
nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stages.datum import text_format
from stages.datum.text_format import counted
from stages.report import evaluation_words as words
from stages.report import markup, plots, report_markup
from stages.report.markup import text
from stages.report.plots import HistogramColumn, PlotAxis, PlotCurve
from stages.report.report_markup import share, table

_MOST_LABELS = 60
_MOST_CONFUSIONS = 20
_MOST_EXAMPLES = 5

_STYLE = """
.names { min-width: 15rem; overflow-wrap: anywhere; }
"""


def page(metrics: Mapping[str, Any], calibration: Mapping[str, Any]) -> str:
    """The report as text for a UTF-8 file."""
    body = [*_head(metrics), "<main>"]
    if metrics["queries"]:
        body += [*_measures(metrics), *_labels(metrics), *_confusions(metrics)]
    if calibration["pairs"]:
        body += _calibration(calibration)
    return "\n".join([*body, *_left_out(metrics), "</main>", *_foot(metrics), ""])


def _head(metrics: Mapping[str, Any]) -> Iterator[str]:
    facts = metrics["facts"]
    yield from markup.head("Evaluation", report_markup.STYLE + _STYLE)
    yield "<header>"
    yield "<h1>Evaluation</h1>"
    yield f'<p class="summary">{text(words.summary(metrics))}</p>'
    yield '<dl class="facts">'
    named = f"{text(facts['backbone'])} <code>{text(facts['model'][:12])}</code>"
    size = f"{facts['image_size']} pixels, {text(facts['fit'])}"
    for name, value in (("Model", named), ("Pictures", size), ("Distance", text(facts["metric"]))):
        yield f"<div><dt>{name}</dt><dd>{value}</dd></div>"
    yield "</dl>"
    yield from markup.items("notes", [metrics["note"]] if metrics["note"] else [])
    yield "</header>"


def _measures(metrics: Mapping[str, Any]) -> Iterator[str]:
    k, ks = metrics["facts"]["k"], metrics["ks"]
    yield '<h2 id="measures">Precision and recall</h2>'
    yield '<div class="plots">'
    for name, said in (
        ("precision", "of the k nearest, the share that is right"),
        ("recall", "of all that is right, the share among them"),
    ):
        caption = f'<figcaption><p class="said">{name}@k: {said}.</p></figcaption>'
        yield f"<figure>{_rates(metrics, name)}{caption}</figure>"
    yield "</div>"
    shown = [f"precision@{each}" for each in ks if each in (1, 3, 5, 10, k)]
    shown += [f"recall@{each}" for each in ks if each in (1, 10, k)] + [f"mAP@{k}", "MRR"]
    rows = [[text(name), *(_estimate(metrics[mean][name]) for mean in ("micro", "macro"))] for name in shown]
    yield from table(
        "measures",
        f"{counted(metrics['queries'], 'query', 'queries')}, with 95 % intervals of {metrics['resamples']:,} resamples",
        ("measure", "mean over queries", "mean over labels"),
        rows,
        numbers=(1, 2),
    )


def _rates(metrics: Mapping[str, Any], name: str) -> str:
    ks = metrics["ks"]
    lines = []
    for mean, said in (("micro", "mean over queries"), ("macro", "mean over labels")):
        values = [metrics[mean][f"{name}@{k}"] for k in ks]
        points = [(k, each["value"]) for k, each in zip(ks, values, strict=True)]
        lines.append(
            PlotCurve(said, points, [(k, each["low"], each["high"]) for k, each in zip(ks, values, strict=True)])
        )
    first, last = lines[0].points[0][1], lines[0].points[-1][1]
    said = f"{name} over queries: {share(first)} at 1, {share(last)} at {ks[-1]}"
    return plots.curves(f"{name}@k", said, PlotAxis("k", ks[0], ks[-1]), PlotAxis(name, 0, 1), lines, whole=True)


def _labels(metrics: Mapping[str, Any]) -> Iterator[str]:
    k, rows = metrics["facts"]["k"], metrics["per_label"]
    yield '<h2 id="labels">Labels, the worst first</h2>'
    cells = [
        [
            f"<bdi>{text(row['label'])}</bdi>",
            plots.bar(row["precision@1"], row["interval"]["low"], row["interval"]["high"]),
            f"{share(row['precision@1'])} <small>{_range(row['interval'])}</small>",
            share(row[f"precision@{k}"]),
            share(row[f"mAP@{k}"]),
            f"{row['pictures']:,}",
        ]
        for row in rows[:_MOST_LABELS]
    ]
    header = ("label", "", "precision@1", f"precision@{k}", f"mAP@{k}", "pictures")
    more = f"; {len(rows) - _MOST_LABELS:,} more are in metrics.json" if len(rows) > _MOST_LABELS else ""
    yield from table("labels", f"with 95 % intervals (Wilson){more}", header, cells, numbers=(2, 3, 4, 5))


def _confusions(metrics: Mapping[str, Any]) -> Iterator[str]:
    found, shown = metrics["confusions"], metrics["matrix"]
    yield '<h2 id="confusions">Labels taken for one another</h2>'
    if not found:
        yield "<p>None: every known neighbour has its query's label.</p>"
        return
    names = [*shown["labels"], *(["all others"] if shown["others"] else [])]
    k = metrics["facts"]["k"]
    said = f"rows: the query's label; columns: the labels of its {k} nearest; coloured by the share of the row"
    yield '<figure class="sheet"><div class="wide">'
    yield plots.matrix("Confusions", said, names, shown["rows"])
    yield f'</div><figcaption><p class="said">{said[0].upper()}{said[1:]}.</p></figcaption></figure>'
    cells = [
        [
            f"<bdi>{text(each['label'])}</bdi>",
            f"<bdi>{text(each['taken_for'])}</bdi>",
            f"{each['nearest']:,}",
            f"{each['among']:,}",
            _pair(each["example"]),
        ]
        for each in found[:_MOST_CONFUSIONS]
    ]
    header = ("label", "taken for", "nearest", f"{k} nearest", "the closest such pair")
    yield from table("confusions", "numbers of queries, and of their neighbours", header, cells, numbers=(2, 3))


def _pair(example: Mapping[str, Any]) -> str:
    names = " → ".join(f"<bdi>{text(example[each])}</bdi>" for each in ("source", "neighbour"))
    return f'<div class="names">{names} <small>{text_format.distance(example["distance"])}</small></div>'


def _calibration(calibration: Mapping[str, Any]) -> Iterator[str]:
    proposed = calibration["proposed"]["distance"]
    yield '<h2 id="calibration">Distance and probability</h2>'
    top = calibration["bins"][-1]["to"] or 1.0
    curve = PlotCurve("probability of the same label", [(x, y) for x, y in calibration["knots"]])
    columns = [
        HistogramColumn(each["from"], each["to"], each["same"], each["pairs"] - each["same"])
        for each in calibration["bins"]
    ]
    near, far = curve.points[0][1], curve.points[-1][1]
    said = f"falls from {share(near)} to {share(far)} at {text_format.distance(top)}; below it the numbers of pairs"
    axis, names = PlotAxis(f"distance ({calibration['facts']['metric']})", 0, top), ("same label", "another label")
    yield '<figure class="sheet">'
    yield plots.calibration("Calibration", said, axis, curve, columns, names, proposed)
    pairs = counted(calibration["pairs"], "pair", "pairs")
    marked = " The dashed line is the proposed threshold." if proposed is not None else ""
    said = f"{pairs} of a query and one of its nearest, fitted by isotonic regression.{marked}"
    yield f'<figcaption><p class="said">{said}'
    yield "</p></figcaption></figure>"
    cells = [
        [
            share(each["probability"]),
            "none" if each["distance"] is None else f"{'at least ' if each['limited'] else ''}{each['distance']:g}",
            f"{each['pairs']:,}",
            share(each["share"]),
            share(each["recall"]),
        ]
        for each in calibration["thresholds"]
    ]
    header = ("probability", "THRESHOLD", "pairs within", "with the same label", "of all with the same label")
    yield from table(
        "calibration", "the largest distances at which the probability is as high", header, cells, (0, 1, 2, 3, 4)
    )
    yield f"<p>{' '.join(map(text, words.threshold(calibration)))}</p>"


def _left_out(metrics: Mapping[str, Any]) -> Iterator[str]:
    found = metrics["left_out"]
    yield '<h2 id="left-out">Labels and pictures left out</h2>'
    cells = [[text(name), f"{count:,}", _examples(examples)] for name, count, examples in words.left_out(metrics)]
    if cells:
        yield from table("left-out", "", ("reason", "number", "examples"), cells, numbers=(1,))
    files = ", ".join(f"{name}: {rows:,}" for name, rows in sorted(found["files"].items()))
    yield f"<p>{'Nothing.' if not cells else ''} Labels by file: <bdi>{text(files or 'no files')}</bdi>.</p>"


def _examples(examples: Sequence[str]) -> str:
    shown = [f"<bdi>{text(each)}</bdi>" for each in examples[:_MOST_EXAMPLES]]
    lines = "<br>".join([*shown, *(["…"] if len(examples) > _MOST_EXAMPLES else [])])
    return f'<div class="names">{lines}</div>'


def _foot(metrics: Mapping[str, Any]) -> Iterator[str]:
    yield "<footer><p>"
    yield "Every labelled picture is a query among all others; equal pictures are one, and pictures without a label are"
    yield f"passed over. A ranking has at most {metrics['facts']['k']} neighbours and ends where the next one is not"
    yield "known; precision then is of those known. Average precision divides by the number of right ones possible in a"
    yield "ranking. <code>metrics.json</code>, <code>calibration.json</code> and <code>queries.parquet</code>, next to"
    yield "this page, have all numbers."
    yield "</p></footer>"
    yield from markup.end()


def _estimate(found: Mapping[str, float]) -> str:
    return f"{share(found['value'])} <small>{_range(found)}</small>"


def _range(found: Mapping[str, float]) -> str:
    return f"{share(found['low'])} – {share(found['high'])}"
