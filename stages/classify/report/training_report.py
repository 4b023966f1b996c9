"""The report on all trainings as one self-contained HTML file: the chosen run, all runs, what was left out.

Takes the values of metrics.json and runs.json; computes nothing. The page runs no scripts, and its policy lets it load
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stages.classify.report import run_sections, training_words
from stages.classify.report.training_words import interval, percent
from stages.datum.text_format import counted
from stages.report import markup, plots, report_markup
from stages.report.markup import text
from stages.report.report_markup import share, table

_MOST_RUNS = 60
_MOST_FAILED = 60
_MOST_LEFT_OUT = 5

_STYLE = """
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 250px), 1fr)); gap: 16px;
  margin: 24px 0 0; padding: 0; list-style: none; }
.tiles li { padding: 14px 18px; border: 1px solid var(--edge); border-radius: 14px; background: var(--card); }
.tiles strong { display: block; font-size: 1.75rem; font-weight: 650; line-height: 1.25;
  font-variant-numeric: tabular-nums; }
.tiles span { display: block; font-size: 0.875rem; color: var(--muted); }
.names { min-width: 12rem; overflow-wrap: anywhere; } .reason { min-width: 9rem; }
.chosen { display: inline-block; padding: 0 7px; border-radius: 7px; background: var(--tint); color: var(--accent);
  font-size: 0.8125rem; }
.settings { min-width: 11rem; } .settings span { display: block; }
.settings i { color: var(--muted); font-style: normal; }
"""


def page(metrics: Mapping[str, Any], runs: Mapping[str, Any], thumbnails: Mapping[str, bytes]) -> str:
    """The report as text for a UTF-8 file. thumbnails: JPEG files of mistakes, by the id of the picture."""
    chosen = next((run for run in runs["runs"] if run["name"] == runs["chosen"]), None)
    body = [*_head(metrics, chosen), "<main>"]
    if chosen is not None:
        body += [
            *_tiles(metrics),
            *run_sections.labels(metrics),
            *run_sections.confusions(metrics),
            *run_sections.mistakes(metrics, thumbnails),
            *run_sections.probabilities(metrics, chosen),
            *run_sections.curves(chosen),
        ]
    body += [*_runs(runs), *_failed(runs), *_left_out(metrics), "</main>", *_foot(chosen)]
    return "\n".join([*body, ""])


def _head(metrics: Mapping[str, Any], chosen: Mapping[str, Any] | None) -> Iterator[str]:
    yield from markup.head("Classifier", report_markup.STYLE + _STYLE + run_sections.STYLE)
    yield "<header>"
    yield "<h1>Classifier</h1>"
    yield f'<p class="summary">{text(training_words.data(metrics))}</p>'
    if chosen is not None:
        yield '<dl class="facts">'
        for name, value in _facts(metrics, chosen):
            yield f"<div><dt>{name}</dt><dd>{value}</dd></div>"
        yield "</dl>"
    yield from markup.items("notes", _notes(metrics, chosen))
    yield "</header>"


def _notes(metrics: Mapping[str, Any], chosen: Mapping[str, Any] | None) -> list[str]:
    return [*filter(None, [metrics["note"]]), *(chosen["notes"] if chosen is not None else ())]


def _facts(metrics: Mapping[str, Any], chosen: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    succeeded, backbone = metrics["runs"]["succeeded"], chosen["backbone"]
    among = f", the best of {counted(succeeded, 'run', 'runs')}" if succeeded > 1 else ""
    yield "Run", f"<code>{text(chosen['name'])}</code>{among}"
    yield "Backbone", f"{text(backbone['described'])} <code>{text(backbone['sha256'][:12])}</code>"
    pictures = f"{backbone['image_size']} pixels, {text(backbone['fit'])}"
    yield "Pictures", pictures
    trained = f"{chosen['weights']:,} numbers, on {'a GPU: ' if chosen['device'] != 'cpu' else 'the '}"
    device = text(chosen["device"]) if chosen["device"] != "cpu" else "CPU"
    yield "Trained", f"{trained}{device}"


def _tiles(metrics: Mapping[str, Any]) -> Iterator[str]:
    validated, held_out = metrics["cross_validation"], metrics["held_out"]
    yield '<ul class="tiles">'
    yield _tile("right in cross-validation", validated, "by networks that had not seen them")
    if held_out is not None:
        yield _tile("right of held-out pictures", held_out, "which no training has seen")
    else:
        yield "<li><strong>–</strong><span>right of held-out pictures: none is held out</span></li>"
    macro = validated["macro"]
    said = f"recall {percent(macro['recall'])}, precision {percent(macro['precision'])}; all labels count alike"
    yield f"<li><strong>{share(macro['f1'])}</strong><span>mean F1 of the labels</span><span>{said}</span></li>"
    yield "</ul>"


def _tile(name: str, found: Mapping[str, Any], said: str) -> str:
    return (
        f"<li><strong>{percent(found['accuracy'])}</strong><span>{name}</span>"
        f"<span>{interval(found)} (95 %); {found['right']:,} of {found['of']:,}, {said}</span></li>"
    )


def _runs(runs: Mapping[str, Any]) -> Iterator[str]:
    good = [run for run in runs["runs"] if not run["failure"]]
    if not good:
        return
    yield '<h2 id="runs">Runs, the best first</h2>'
    cells = []
    for run in good[:_MOST_RUNS]:
        mark = ' <span class="chosen">chosen</span>' if run["name"] == runs["chosen"] else ""
        found, held_out = run["cross_validation"], run["held_out"]
        cells.append(
            [
                f"<code>{text(run['name'])}</code>{mark}",
                plots.bar(found["accuracy"], found["low"], found["high"]),
                f"{percent(found['accuracy'])} <small>{interval(found)}</small>",
                f"{percent(held_out['accuracy'])} <small>{interval(held_out)}</small>" if held_out else "",
                "" if run["ece"] is None else share(run["ece"]),
                f"{run['weights']:,}",
                text(run["takes"]),
                _settings(run),
            ]
        )
    more = f"; {len(good) - _MOST_RUNS:,} more are in runs.json" if len(good) > _MOST_RUNS else ""
    names = ("run", "", "cross-validation", "held out", "calib. error", "trained numbers", "input")
    header = (*names, "parameters, if changed")
    said = f"the accuracy of the cross-validation decides{more}"
    yield from table("runs", said, header, cells, numbers=(2, 3, 4, 5))


def _settings(run: Mapping[str, Any]) -> str:
    """The parameters of a run that are not the defaults."""
    changed = training_words.changed(run["parameters"]).items()
    lines = [f"<span><i>{text(name)}</i> {text(value)}</span>" for name, value in changed]
    return f'<div class="settings">{"".join(lines) or "<small>defaults</small>"}</div>'


def _failed(runs: Mapping[str, Any]) -> Iterator[str]:
    failed = [run for run in runs["runs"] if run["failure"]]
    if not failed:
        return
    yield '<h2 id="failed">Failed runs</h2>'
    rows = [
        [f"<code>{text(run['name'])}</code>", f'<div class="names"><bdi>{text(run["failure"])}</bdi></div>']
        for run in failed[:_MOST_FAILED]
    ]
    more = f"{len(failed) - _MOST_FAILED:,} more are in runs.json" if len(failed) > _MOST_FAILED else ""
    yield from table("failed", more, ("run", "reason"), rows, numbers=())


def _left_out(metrics: Mapping[str, Any]) -> Iterator[str]:
    yield '<h2 id="left-out">Labels and pictures left out</h2>'
    cells = [
        [f'<div class="reason">{text(reason)}</div>', f"{count:,}", _examples(shown)]
        for reason, count, shown in training_words.left_out(metrics)
    ]
    if cells:
        yield from table("left-out", "", ("reason", "number", "examples"), cells, numbers=(1,))
    files = metrics["left_out"]["files"]
    rows = counted(sum(files.values()), "label", "labels")
    of_files = counted(len(files), "file", "files")
    yield f"<p>{'' if cells else 'Nothing. '}{rows} in {of_files}; metrics.json has more.</p>"


def _examples(examples: Sequence[str]) -> str:
    shown = [f"<bdi>{text(each)}</bdi>" for each in examples[:_MOST_LEFT_OUT]]
    lines = "<br>".join([*shown, *(["…"] if len(examples) > _MOST_LEFT_OUT else [])])
    return f'<div class="names">{lines}</div>'


def _foot(chosen: Mapping[str, Any] | None) -> Iterator[str]:
    yield "<footer><p>"
    if chosen is not None:
        yield "Training pictures are divided into folds, by their content alone; each is predicted by a network that"
        yield "was trained on the other folds. The chosen network is trained on all of them. Runs are compared on these"
        yield "pictures, so the best one's accuracy is a little too high; held-out pictures had no part in the choice."
        yield "Intervals are Wilson's, of 95 %."
    yield "<code>metrics.json</code> and <code>runs.json</code>, next to this page, have all numbers."
    yield "</p></footer>"
    yield from markup.end()
