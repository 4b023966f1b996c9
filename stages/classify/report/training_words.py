"""Trainings, their choice and a promotion in words, for pages and the command: summaries, what was left out, verdicts.

Takes JSON values: metrics.json and runs.json of the stage select, promotion.json of the stage promotion. Only the
standard library: the command imports this at every start.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stages.classify.training.training_parameters import ConvolutionalParameters, FineTuneParameters, TrainingParameters
from stages.datum.text_format import counted, visible
from stages.report.evaluation_words import LeftOut, unused_labels

CHANCE = 0.05
"""The probability by chance below which a difference counts as beyond chance."""

_MOST_NAMED = 5  # labels that a sentence names


def summary(metrics: Mapping[str, Any]) -> str:
    """The chosen run and its accuracy in one line; the reason if there is none."""
    if not metrics["run"]:
        return str(metrics["note"])
    runs = metrics["runs"]["succeeded"]
    among = f", the best of {runs:,} runs" if runs > 1 else ""
    held_out = metrics["held_out"]
    unseen = f"; {score(held_out)} of held-out pictures" if held_out else ""
    return f"{metrics['run']}{among}: {score(metrics['cross_validation'])} right in cross-validation{unseen}"


def data(metrics: Mapping[str, Any]) -> str:
    """The pictures and labels of a training in one line."""
    pictures = metrics["pictures"]
    return (
        f"{counted(pictures['training'], 'training picture', 'training pictures')}, {pictures['held_out']:,} held out, "
        f"{counted(metrics['labels'], 'label', 'labels')}"
    )


def score(found: Mapping[str, Any] | None) -> str:
    """An accuracy with its 95 % interval and its counts: "93.2 % (90.6 to 95.1 %, 466 of 500)"."""
    if found is None or not found["of"]:
        return "no pictures"
    return f"{percent(found['accuracy'])} ({interval(found)}, {found['right']:,} of {found['of']:,})"


def interval(found: Mapping[str, Any]) -> str:
    """An interval of shares: "90.6 to 95.1 %"."""
    return f"{percent(found['low']).removesuffix(' %')} to {percent(found['high'])}"


def percent(share: float) -> str:
    """A share from 0 to 1 in per cent, with one decimal; "100 %" and "0 %" only for exactly these."""
    rounded = min(99.9, max(0.1, round(100 * share, 1))) if 0 < share < 1 else 100 * share
    return f"{rounded:.0f} %" if rounded in (0, 100) else f"{rounded:.1f} %"


def left_out(metrics: Mapping[str, Any]) -> list[LeftOut]:
    """All that was left out of a training."""
    few = metrics["left_out"]["unlearnable"]
    labels = [
        f"{each['label']} ({counted(each['training'], 'training picture', 'training pictures')})"
        for each in few["examples"]
    ]
    reasons = [*unused_labels(metrics["left_out"]), ("labels with too few training pictures", few["count"], labels)]
    return [each for each in reasons if each[1]]


def settings(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The parameters in which runs differ, by name: "hidden", "fine_tune.epochs". runs: the values of run.json."""
    flat = [flattened(run["parameters"]) for run in runs if run["parameters"] is not None]
    names = dict.fromkeys(name for each in flat for name in each)
    return [name for name in names if len({repr(each.get(name)) for each in flat}) > 1]


def changed(parameters: Mapping[str, Any] | None) -> dict[str, str]:
    """The parameters of a run that are not the defaults, by name, such as "fine_tune.epochs", and their values in
    words. parameters: those of run.json."""
    if parameters is None:
        return {}
    defaults = flattened(
        replace(
            TrainingParameters(""), fine_tune=FineTuneParameters(), convolutional=ConvolutionalParameters()
        ).as_data()
    )
    given = flattened(parameters)
    return {name: setting(value) for name, value in given.items() if value is not None and value != defaults.get(name)}


def augmentation(parameters: Mapping[str, Any]) -> str:
    """The random changes of pictures in the training of a convolutional network, such as "moved by up to 8 % of the
    side, turned by up to 11°"; "" without any. parameters: those of run.json."""
    found = (parameters.get("convolutional") or {}).get("augmentation", {})
    share = {name: f"by up to {100 * value:g} %" for name, value in found.items()}
    words = {
        "flip": "mirrored",
        "shift": f"moved {share.get('shift')} of the side",
        "zoom": f"scaled {share.get('zoom')}",
        "rotation": f"turned by up to {360 * found.get('rotation', 0):.0f}°",
        "brightness": f"brighter or darker {share.get('brightness')}",
        "contrast": f"of other contrast {share.get('contrast')}",
    }
    return ", ".join(said for name, said in words.items() if found.get(name))


def is_by_one_fold(parameters: Mapping[str, Any]) -> bool:
    """Whether a training left out one fold alone, which validates it. parameters: those of run.json."""
    return (parameters.get("convolutional") or {}).get("cross_validation") is False


def flattened(parameters: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """Parameters by name, those of a group with its name and a dot before theirs."""
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        found |= flattened(value, f"{within}{name}.") if isinstance(value, Mapping) else {f"{within}{name}": value}
    return found


def setting(value: Any) -> str:
    """The value of a parameter: "256, 64", "yes", "0.001"; "" for one that a run does not have."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(setting, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def verdict(promotion: Mapping[str, Any]) -> str:
    """The result of a promotion's comparison in one sentence."""
    candidate, current = promotion["candidate"], promotion["current"]
    if promotion["note"]:
        return str(promotion["note"])
    if current is None:
        return f"The candidate has {score(candidate)} right; there is no current model to compare it with."
    if not promotion["first"]["only_candidate"] + promotion["first"]["only_current"]:
        return "The candidate and the current model are right on the same pictures."
    if not promotion["difference"]:
        return "The candidate and the current model have as many right."
    better = "more" if promotion["difference"] > 0 else "fewer"
    beyond = "beyond chance" if promotion["p"] < CHANCE else "but chance can explain it"
    return f"The candidate has {better} right than the current model, {beyond} ({probability(promotion['p'])})."


def promotion_lines(promotion: Mapping[str, Any]) -> Iterator[str]:
    """The comparison of a promotion, line by line: both models, their difference, the verdict, and cautions."""
    for name in ("candidate", "current"):
        each = promotion[name]
        if each is not None and each["of"]:
            yield f"{name}: {visible(each['run'])}, {score(each)}{_unknown(each)}"
    if promotion["difference"] is not None:
        yield f"difference: {points(promotion)}"
    yield verdict(promotion)
    yield from (f"caution: {each}" for each in promotion["cautions"])


def points(found: Mapping[str, Any]) -> str:
    """A difference of accuracies with its 95 % interval: "+1.2 points (-0.5 to +2.9)"."""
    value, low, high = (f"{100 * found[name]:+.1f}" for name in ("difference", "low", "high"))
    return f"{value} points ({low} to {high})"


def probability(value: float) -> str:
    """The probability of a difference by chance, of McNemar's test: "p = 0.012"."""
    return "p < 0.001" if value < 0.001 else f"p = {math.floor(1000 * value) / 1000:.3f}"


def named(labels: Sequence[str], count: int) -> str:
    """Some of `count` labels, for a sentence."""
    shown = [visible(each) for each in labels[:_MOST_NAMED]]
    return ", ".join([*shown, *([f"{count - len(shown):,} more"] if count > len(shown) else [])])


def _unknown(model: Mapping[str, Any]) -> str:
    found = model["unknown"]
    if not found["pictures"]:
        return ""
    pictures = counted(found["pictures"], "picture has a label", "pictures have a label")
    return f"; {pictures} that it does not know, and counted as wrong: {named(found['labels'], found['count'])}"
