"""The sections of the report about the chosen run: its labels, confusions, mistakes, probabilities and learning curves.

Takes the values of metrics.json and run.json; computes nothing. Knows HTML, but no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stages.classify.report.training_words import interval, percent
from stages.datum.text_format import counted
from stages.files.tables.prediction_table import HELD_OUT
from stages.report import markup, plots
from stages.report.markup import text
from stages.report.plots import HistogramColumn, PlotAxis, PlotCurve
from stages.report.report_markup import share, table

MOST_EXAMPLES = 24
"""Most mistakes that are shown with their pictures."""

_MOST_LABELS = 60
_MOST_CONFUSIONS = 12
_MOST_POINTS = 200  # of a learning curve
_MOST_ROWS = 6

STYLE = """
.said + .mistakes { margin-top: 14px; }
.mistakes { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(46%, 168px), 1fr)); gap: 20px 16px; }
.mistakes figcaption { margin-top: 6px; font-size: 0.8125rem; line-height: 1.4; color: var(--muted); }
.mistakes b { color: var(--ink); font-weight: 600; } .mistakes .wrong { color: var(--second); }
.mistakes img, .mistakes .blank { max-width: none; background: var(--card); }
"""


def labels(metrics: Mapping[str, Any]) -> Iterator[str]:
    """The labels, the worst first."""
    rows = metrics["per_label"]
    yield '<h2 id="labels">Labels, the worst first</h2>'
    cells = [
        [
            f"<bdi>{text(row['label'])}</bdi>",
            "" if row["recall"] is None else plots.bar(row["recall"], row["low"], row["high"]),
            "" if row["recall"] is None else f"{percent(row['recall'])} <small>{interval(row)}</small>",
            "never predicted" if row["precision"] is None else percent(row["precision"]),
            "" if row["f1"] is None else share(row["f1"]),
            f"{row['pictures']:,}",
            f"{row['held_out']['right']:,} of {row['held_out']['of']:,}" if row["held_out"] else "<small>none</small>",
        ]
        for row in rows[:_MOST_LABELS]
    ]
    more = f"; {len(rows) - _MOST_LABELS:,} more are in metrics.json" if len(rows) > _MOST_LABELS else ""
    header = ("label", "", "recall", "precision", "F1", "pictures", "held out, right")
    said = f"cross-validation: recall is the share of the label's pictures that are right, with 95 % intervals{more}"
    yield from table("labels", said, header, cells, numbers=(2, 3, 4, 5, 6))


def confusions(metrics: Mapping[str, Any]) -> Iterator[str]:
    """The confusion matrix, and the most frequent confusions."""
    found, shown = metrics["confusions"], metrics["matrix"]
    yield '<h2 id="confusions">Labels taken for one another</h2>'
    said = "rows: the picture's label; columns: the predicted one; coloured by the share of the row"
    names = [*shown["labels"], *(["all others"] if shown["others"] else [])]
    yield '<figure class="sheet"><div class="wide">'
    yield plots.matrix("Confusion matrix", said, names, shown["rows"])
    some = f" These {len(shown['labels'])} labels are confused most." if shown["others"] else ""
    yield f'</div><figcaption><p class="said">{said[0].upper()}{said[1:]}.{some}</p></figcaption></figure>'
    if not found:
        yield "<p>No picture is taken for one of another label.</p>"
        return
    cells = [
        [f"<bdi>{text(each['label'])}</bdi>", f"<bdi>{text(each['taken_for'])}</bdi>", f"{each['pictures']:,}"]
        for each in found[:_MOST_CONFUSIONS]
    ]
    more = len(found) - _MOST_CONFUSIONS
    caption = "cross-validation, the most frequent first" + (f"; {more:,} more are in metrics.json" if more > 0 else "")
    yield from table("confusions", caption, ("label", "taken for", "pictures"), cells, numbers=(2,))


def mistakes(metrics: Mapping[str, Any], thumbnails: Mapping[str, bytes]) -> Iterator[str]:
    """The wrong predictions with their pictures."""
    found = metrics["mistakes"]
    yield '<h2 id="mistakes">Mistakes, the most confident first</h2>'
    if not found:
        yield "<p>None: every prediction is right.</p>"
        return
    yield '<p class="said">Of a confident mistake, the label itself is often wrong.</p>'
    yield '<div class="mistakes">'
    for each in found[:MOST_EXAMPLES]:
        drawn = markup.picture(thumbnails.get(each["id"]), each["source"])
        held = "; held out" if each["split"] == HELD_OUT else ""
        yield (
            f"<figure>{drawn}<figcaption><b><bdi>{text(each['label'])}</bdi></b> {percent(each['of_label'])}<br>"
            f'taken for <b class="wrong"><bdi>{text(each["predicted"])}</bdi></b> {percent(each["probability"])}{held}'
            f"<br><bdi>{text(each['source'])}</bdi></figcaption></figure>"
        )
    yield "</div>"


def probabilities(metrics: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[str]:
    """The calibration: accuracy by probability."""
    yield '<h2 id="probabilities">Probabilities</h2>'
    sides = [
        (name, metrics[key])
        for name, key in (("cross-validation", "cross_validation"), ("held out", "held_out"))
        if metrics[key] is not None
    ]
    yield '<div class="plots">'
    for name, found in sides:
        caption = f'<figcaption><p class="said">{text(_calibrated(name, found))}</p></figcaption>'
        yield f"<figure>{_reliability(name, found)}{caption}</figure>"
    yield "</div>"
    by_range = [{(each["from"], each["to"]): each for each in found["bins"]} for _, found in sides]
    ranges = sorted({each for several in by_range for each in several})
    cells = [
        [
            f"{percent(low)} – {percent(high)}",
            *(cell for several in by_range for cell in _bin(several.get((low, high)))),
        ]
        for low, high in ranges
    ]
    header = ["probability", *(f"{name}{of}" for name, _ in sides for of in ("", ", right"))]
    caption = f"pictures by the probability of the predicted label, after the temperature {run['temperature']:g}"
    yield from table("probabilities", caption, header, cells, numbers=range(1, len(header)))


def curves(run: Mapping[str, Any]) -> Iterator[str]:
    """The learning curves, if the run has any."""
    found = run["curves"]
    epochs = max(map(len, found.values()), default=0)
    if not epochs:
        return
    yield '<h2 id="curves">Learning curves</h2>'
    yield '<div class="plots">'
    for kind, said in (("loss", "the mean loss in nats"), ("accuracy", "the share that is right")):
        if found.get(kind):
            caption = (
                f'<figcaption><p class="said">{kind.capitalize()}: {said}, the mean over the folds.</p></figcaption>'
            )
            yield f"<figure>{_learning(found, kind, epochs)}{caption}</figure>"
    yield "</div>"
    names = [name for name in ("loss", "validation_loss", "accuracy", "validation_accuracy") if found.get(name)]
    rows = [
        [f"{epoch + 1:,}", *(share(found[name][epoch]) if epoch < len(found[name]) else "" for name in names)]
        for epoch in _some(epochs, _MOST_ROWS)
    ]
    header = ("epoch", *(name.replace("_", " ") for name in names))
    yield from table("curves", "", header, rows, numbers=range(len(header)))


def _calibrated(name: str, found: Mapping[str, Any]) -> str:
    return (
        f"{name[0].upper()}{name[1:]}, {counted(found['of'], 'picture', 'pictures')}: expected calibration error "
        f"{share(found['ece'])}, Brier score {share(found['brier'])}, log loss {share(found['log_loss'])}."
    )


def _bin(found: Mapping[str, Any] | None) -> tuple[str, str]:
    if found is None:
        return "0", ""
    return f"{found['pictures']:,}", f"{percent(found['accuracy'])} <small>{interval(found)}</small>"


def _reliability(name: str, found: Mapping[str, Any]) -> str:
    bins = found["bins"]
    points = [(each["probability"], each["accuracy"]) for each in bins]
    band = [(each["probability"], each["low"], each["high"]) for each in bins]
    columns = []
    for each in bins:
        right = round(each["accuracy"] * each["pictures"])
        columns.append(HistogramColumn(each["from"], each["to"], right, each["pictures"] - right))
    said = f"expected calibration error {share(found['ece'])}; below, the numbers of pictures"
    return plots.calibration(
        f"Accuracy by probability, {name}",
        said,
        PlotAxis("probability of the predicted label", 0, 1),
        PlotCurve("share that is right", points, band),
        columns,
        ("right", "wrong"),
        ideal=PlotCurve("as it should be", [(0, 0), (1, 1)]),
    )


def _learning(found: Mapping[str, Sequence[float]], kind: str, epochs: int) -> str:
    lines = [
        PlotCurve(name, [(epoch + 1, found[key][epoch]) for epoch in _some(len(found[key]), _MOST_POINTS)])
        for name, key in (("training", kind), ("validation", f"validation_{kind}"))
        if found.get(key)
    ]
    ends = "; ".join(f"{each.name} {share(each.points[0][1])} to {share(each.points[-1][1])}" for each in lines)
    top = 1.0 if kind == "accuracy" else max(value for each in lines for _, value in each.points) or 1.0
    title = f"{kind.capitalize()} by epoch"
    return plots.curves(title, ends, PlotAxis("epoch", 1, epochs), PlotAxis(kind, 0, top), lines, whole=True)


def _some(number: int, most: int) -> list[int]:
    """At most `most` of the whole numbers below `number`, evenly spaced, with the first and the last."""
    if number <= most:
        return list(range(number))
    return sorted({round(place * (number - 1) / (most - 1)) for place in range(most)})
