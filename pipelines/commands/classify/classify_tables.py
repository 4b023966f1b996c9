"""Runs and their differences on the terminal. Contacts no server itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

from pipelines.analysis.classifiers.experiments import SHORT, Experiment
from pipelines.analysis.classifiers.run_comparison import (
    CountWithExamples,
    RunComparison,
    RunDisagreement,
    parameters_of,
)
from pipelines.commands.kit.terminal import console, local_time, plain_table, say, say_all
from stages.classify.report import training_words
from stages.classify.training.run_records import AccuracyScore
from stages.classify.training.training_parameters import TrainingParameters
from stages.datum.text_format import visible

_WIDE = 110
"""Characters of a terminal on which a run has one line."""
_PARAMETERS, _NARROW = 12, 8
"""Characters of the column of parameters, at least, on a wide terminal and on a narrow one."""

_KINDS = {"training": "training", "held_out": "held out", "unlearnable": "of labels with too few"}
_SCORES = {"cross_validation": "cross-validated", "held_out": "held out"}


def show(found: Sequence[Experiment]) -> None:
    """Prints the runs as a table, and the reasons of those that failed."""
    if found:
        console.print(table(found, console.width))
    for each in found:
        if each.run.failure:
            say(f"{each.name} failed: {each.run.failure}")


def show_choice(metrics: Mapping[str, Any]) -> None:
    """Prints the choice of `select`, if there is one, with its accuracy, and what was left out. metrics: its
    metrics.json."""
    if metrics["run"]:
        say(training_words.summary(metrics))
        say(training_words.data(metrics))
        if metrics["note"]:
            say(metrics["note"])
    for reason, count, examples in training_words.left_out(metrics):
        say(f"left out, {reason}: {count:,}{f', such as {examples[0]}' if examples else ''}")


def table(found: Sequence[Experiment], width: int) -> Table:
    """The runs: the parameters in which they differ from each other and from the defaults, accuracies in per cent with
    their intervals, training pictures, the commits of labels and of images, seconds of training, and the device.

    width: of the terminal, in characters. On a narrow one a run has two lines.
    """
    wide = width >= _WIDE
    between = " " if wide else "\n"
    shown = plain_table(padding=(0, 1), collapse_padding=True)
    shown.add_column("run", no_wrap=True, overflow="fold")
    shown.add_column("parameters", min_width=_PARAMETERS if wide else _NARROW, overflow="fold")
    for name in ("validated, %", "held out, %"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("pictures", justify="right", no_wrap=True)
    shown.add_column(f"labels,{between}images", no_wrap=True)
    shown.add_column(f"time,{between}device", min_width=7, overflow="fold")
    varied = training_words.settings([each.run.as_data() for each in found])
    for each in found:
        mark = "promoted" if each.promoted else "chosen" if each.chosen else ""
        pictures = f"{each.run.pictures.training:,}" if each.run.pictures.training else ""
        shown.add_row(
            _cell(between, each.name, mark),
            _cell(between, _settings(each, varied)),
            "failed" if each.run.failure else _short(each.run.cross_validation, wide),
            "" if each.run.failure else _short(each.run.held_out, wide),
            pictures,
            _cell(between, *(commit[:SHORT] or "gone" for commit in (each.labels, each.images))),
            _cell(between, seconds(each.seconds), each.run.device),
        )
    return shown


def _cell(between: str, *parts: str) -> str:
    return between.join(escape(visible(each)) for each in parts if each)


def _settings(each: Experiment, varied: Sequence[str]) -> str:
    """The parameters of a run that are not the defaults, of those that vary."""
    values = {name: value for name, value in parameters_of(each).items() if name in varied}
    defaults = training_words.flattened(TrainingParameters(each.run.name).as_data())
    named = [f"{name}={training_words.setting(value)}" for name, value in values.items() if value != defaults.get(name)]
    return " ".join(named) or ("defaults" if values else "")


def score(found: AccuracyScore | None) -> str:
    """An accuracy with its interval; "" for none."""
    return (
        "" if found is None else f"{training_words.percent(found.accuracy)} ({training_words.interval(asdict(found))})"
    )


def _short(found: AccuracyScore | None, wide: bool) -> str:
    """The same without the unit; on a narrow terminal the interval has a line of its own."""
    said = score(found).replace(" %", "")
    return said if wide else said.removesuffix(")").replace(" (", "\n")


def seconds(found: float | None) -> str:
    """A time of training; "" if it was not recorded."""
    if found is None:
        return ""
    return f"{found:.1f} s" if found < 100 else f"{found / 60:.0f} min"


def show_differences(found: RunComparison) -> None:
    """Prints what differs between two runs."""
    a, b = found.a.name, found.b.name
    shown = plain_table("", a, b, "difference")
    for name, (old, new) in found.parameters.items():
        shown.add_row(name, training_words.setting(old), training_words.setting(new), "")
    for name, (before, after) in found.scores.items():
        change = "" if before is None or after is None else f"{100 * (after.accuracy - before.accuracy):+.1f} points"
        shown.add_row(_SCORES[name], score(before), score(after), change)
    for name, (few, many) in found.pictures.items():
        shown.add_row(f"pictures, {_KINDS[name]}", f"{few:,}", f"{many:,}", f"{many - few:+,}" if many != few else "")
    shown.add_row("trained", *(local_time(each.began) if each.began else "" for each in (found.a, found.b)), "")
    shown.add_row("on", found.a.run.device, found.b.run.device, "")
    for repo in ("labels", "images", "models"):
        old, new = (getattr(each, repo)[:12] or "gone" for each in (found.a, found.b))
        shown.add_row(f"commit of {repo}", old, new, "the same" if old == new else "")
    console.print(shown)
    for each in (found.a, found.b):
        if each.run.failure:
            say(f"{each.name} failed: {each.run.failure}")
    say_all(_labels(found))
    say_all(_verdicts(found))


def _labels(found: RunComparison) -> Iterator[str]:
    if found.labels is None:
        yield "the labels of one of them are gone with their commit"
        return
    for kind in ("added", "removed"):
        yield from _examples(f"labels {kind}", found.labels[kind], str)
    yield from _examples("labels changed", found.labels["changed"], lambda each: f"{each[0]}, {each[1]} to {each[2]}")


def _verdicts(found: RunComparison) -> Iterator[str]:
    for only, verdicts in ((found.b, found.gained), (found.a, found.lost)):
        if verdicts is not None:
            yield from _examples(f"pictures right in {only.name} alone", verdicts, _verdict)


def _verdict(each: RunDisagreement) -> str:
    wrong = each.a if each.a != each.label else each.b
    return f"{each.source}, {each.label} taken for {wrong}"


def _examples(what: str, some: CountWithExamples, told: Callable[[Any], str]) -> Iterator[str]:
    if some.count:
        yield f"{what}: {some.count:,}{', such as' if some.count > len(some.examples) else ''}"
        yield from (f"  {told(each)}" for each in some.examples)
