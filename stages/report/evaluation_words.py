"""The results of an evaluation in words, for the page and the command.

Takes the values of stages.quality.evaluation. Only the standard library: the command imports this at every start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stages.datum.text_format import counted

LeftOut = tuple[str, int, list[str]]
"""Something that was left out: the reason, the number, and examples."""


def summary(metrics: Mapping[str, Any]) -> str:
    """The pictures and labels that an evaluation is of."""
    of = f"{counted(metrics['pictures'], 'picture', 'pictures')}"
    return f"{metrics['labelled']:,} of {of} with a label, {counted(metrics['labels'], 'label', 'labels')}"


def unused_labels(found: Mapping[str, Any]) -> list[LeftOut]:
    """What gives no picture a label: the same in evaluations and trainings, each reason with 0 or more."""
    conflicts = [f"{each['source']} ({', '.join(each['labels'])})" for each in found["conflicts"]["examples"]]
    return [
        ("lines or files of labels that cannot be read", found["problems"]["count"], found["problems"]["examples"]),
        ("sources with several labels", found["conflicts"]["count"], conflicts),
        ("pictures whose sources have different labels", found["mixed"]["count"], found["mixed"]["examples"]),
        ("labels for sources that are not in the library", found["unknown"]["count"], found["unknown"]["examples"]),
    ]


def left_out(metrics: Mapping[str, Any]) -> list[LeftOut]:
    """All that was left out of an evaluation."""
    found = metrics["left_out"]
    reasons = [
        *unused_labels(found),
        ("pictures without a label", metrics["pictures"] - metrics["labelled"], []),
        ("pictures that alone have their label", found["single"]["count"], found["single"]["examples"]),
        ("labelled pictures without a labelled neighbour", found["alone"]["count"], []),
    ]
    return [each for each in reasons if each[1]]


def threshold(calibration: Mapping[str, Any]) -> Iterator[str]:
    """Sentences about the proposed threshold."""
    proposed = calibration["proposed"]
    likely = f"{proposed['probability']:.0%}".replace("%", " %")
    if proposed["distance"] is None:
        yield f"No THRESHOLD: at no distance do pairs have the same label with a probability of {likely}."
        return
    yield f"Proposed: THRESHOLD={proposed['distance']:g}; up to there a pair has the same label with at least {likely}."
    if proposed["limited"]:
        yield "It could be larger: past it, fewer than half of the rankings know all pairs; a larger K would show more."
    yield "Pairs within it are taken to be the same thing, as the labels mean it."
