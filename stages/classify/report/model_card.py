"""The model card of a chosen classifier, as Markdown: purpose, data, backbone, parameters, measures, limits, use.

Takes the values of metrics.json and run.json; every sentence follows from them. Knows no files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from stages.backbone import catalogue
from stages.backbone.backbone_spec import BackboneSpec
from stages.classify.report.training_words import interval, left_out, percent
from stages.datum.text_format import counted, visible

_MOST_LABELS = 1000
_MOST_WORST = 10
_MOST_EXAMPLES = 5
_FEW = 10  # training pictures; a label with fewer is pointed out

_SPECIAL = re.compile(r"([\\`*_\[\]<>&|~$@#]|:(?=//))")


def card(metrics: Mapping[str, Any], run: Mapping[str, Any], backbone: BackboneSpec | None) -> str:
    """The card as text for a UTF-8 file. backbone: the description of the run's backbone; None if it is not known."""
    parts = (
        [f"# Classifier {_code(run['name'])}", "", *_purpose(metrics, run)],
        ["## Data", "", *_data(metrics, run)],
        ["## Backbone", "", *_backbone(run, backbone)],
        ["## Parameters", "", *_parameters(run)],
        ["## Measures", "", *_measures(metrics)],
        ["## Calibration", "", *_calibration(metrics, run)],
        ["## Limits", "", *_limits(metrics, run)],
        ["## Use", "", *_use(run)],
    )
    return "\n".join("\n".join([*part, ""]) for part in parts)


def plain(given: str) -> str:
    """A text that Markdown shows as it is, within a line."""
    escaped = _SPECIAL.sub(r"\\\1", visible(given)).replace("www.", r"www\.")
    return re.sub(r"^([-+=]|\d+[.)])", lambda found: f"{found[0][:-1]}\\{found[0][-1]}", escaped)


def _purpose(metrics: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[str]:
    taken = (
        "from the vector that the backbone below gives for it"
        if run["takes"] == "vectors"
        else "from its pixels, framed as the backbone below takes them; layers of the backbone are trained, too"
    )
    labels = counted(len(run["labels"]), "label", "labels")
    yield f"Gives a picture one of {labels}, with a probability of each, {taken}."
    succeeded = metrics["runs"]["succeeded"]
    if succeeded > 1:
        yield f"It is the best of {succeeded:,} runs by the accuracy of their cross-validation."


def _data(metrics: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[str]:
    pictures = run["pictures"]
    share = percent(run["held_out_share"])
    yield f"- {counted(pictures['training'], 'training picture', 'training pictures')}"
    yield f"- {pictures['held_out']:,} held out: about {share}, chosen by a hash of their pixels; no training saw them"
    for reason, count, examples in left_out(metrics):
        shown = ", ".join(map(plain, examples[:_MOST_EXAMPLES]))
        rest = " …" if len(examples) > _MOST_EXAMPLES else ""
        yield f"- left out, {reason}: {count:,}{f' ({shown}{rest})' if shown else ''}"
    yield ""
    rows = sorted(metrics["per_label"], key=lambda row: str(row["label"]))
    cells = [
        (plain(row["label"]), f"{row['pictures']:,}", f"{row['held_out']['of'] if row['held_out'] else 0:,}")
        for row in rows[:_MOST_LABELS]
    ]
    yield from _table(("label", "training pictures", "held out"), cells)
    if len(rows) > _MOST_LABELS:
        yield ""
        yield f"{len(rows) - _MOST_LABELS:,} more labels are in metrics.json."


def _backbone(run: Mapping[str, Any], spec: BackboneSpec | None) -> Iterator[str]:
    facts = run["backbone"]
    yield f"- {plain(facts['described'])}, {facts['dimension']:,} numbers per picture"
    yield f"- identity: {_code(facts['sha256'])}"
    yield f"- pictures: {facts['image_size']} × {facts['image_size']} pixels, FIT={facts['fit']}"
    if spec is None:
        yield "- origin of its weights, and their licence: not known here; `lookalike model list` has the known ones"
        return
    yield f"- pooling: {plain(spec.pooling)}; precision: {plain(spec.precision)}"
    yield f"- weights: {plain(spec.weights.origin)}, sha256 {_code(spec.weights.sha256)}"
    yield f"- licence of the weights: {_licence(spec)}"


def _licence(spec: BackboneSpec) -> str:
    """The licence of weights that the catalogue knows; a user's own model has pooling `own`."""
    entry = catalogue.CATALOGUE.get(spec.name)
    if entry is None or spec.pooling == "own":
        return "not known; ask their origin"
    return f"{entry.licence}, if they are the published ones of {entry.name}"


def _parameters(run: Mapping[str, Any]) -> Iterator[str]:
    yield "```json"
    yield json.dumps(run["parameters"], indent=2, sort_keys=True)
    yield "```"


def _measures(metrics: Mapping[str, Any]) -> Iterator[str]:
    sides = [metrics["cross_validation"], metrics["held_out"]]
    rows = [("accuracy", *("none" if each is None else _accuracy(each) for each in sides))]
    for name in ("recall", "precision", "f1"):
        values = ("none" if each is None else f"{each['macro'][name]:.3f}" for each in sides)
        rows.append((f"mean {'F1' if name == 'f1' else name} of the labels", *values))
    for name, said in (("log_loss", "log loss"), ("brier", "Brier score of the predicted label")):
        rows.append((said, *("none" if each is None else f"{each[name]:.3f}" for each in sides)))
    rows.append(("expected calibration error", *("none" if each is None else f"{each['ece']:.3f}" for each in sides)))
    yield from _table(("measure", "cross-validation", "held out"), rows)
    yield ""
    yield "The labels with the least F1, in the cross-validation:"
    yield ""
    cells = [
        (
            plain(row["label"]),
            "none" if row["recall"] is None else f"{percent(row['recall'])} ({interval(row)})",
            "never predicted" if row["precision"] is None else percent(row["precision"]),
            "none" if row["f1"] is None else f"{row['f1']:.3f}",
        )
        for row in metrics["per_label"][:_MOST_WORST]
    ]
    yield from _table(("label", "recall", "precision", "F1"), cells)


def _accuracy(found: Mapping[str, Any]) -> str:
    return f"{percent(found['accuracy'])} ({interval(found)}), {found['right']:,} of {found['of']:,}"


def _calibration(metrics: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[str]:
    yield f"Its probabilities are those of a softmax at the temperature {run['temperature']:g}, which is part of the"
    yield "network, and fits the predictions of the cross-validation best."
    held_out = metrics["held_out"]
    if held_out is not None:
        yield f"On the held-out pictures the expected calibration error is {held_out['ece']:.3f}: by so much, on"
        yield "average, the probability of a predicted label differs from the share that is right."


def _limits(metrics: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[str]:
    yield "- It knows its labels alone: a picture of anything else gets one of them, too."
    if metrics["runs"]["succeeded"] > 1:
        yield "- The run was chosen by the accuracy of its cross-validation, which is therefore a little too high."
    if metrics["held_out"] is None:
        yield "- No picture was held out, so no accuracy is free of the choice among runs."
    few = [row["label"] for row in metrics["per_label"] if row["pictures"] < _FEW]
    if few:
        yield f"- Fewer than {_FEW} training pictures: {_named(sorted(few))}."
    unseen = [row["label"] for row in metrics["per_label"] if row["held_out"] is None]
    if metrics["held_out"] is not None and unseen:
        yield f"- No held-out picture: {_named(sorted(unseen))}."
    never = [row["label"] for row in metrics["per_label"] if not row["predicted"]]
    if never:
        yield f"- Never predicted in the cross-validation: {_named(sorted(never))}."
    for note in run["notes"]:
        yield f"- {plain(note)}"


def _use(run: Mapping[str, Any]) -> Iterator[str]:
    yield "Files beside this card: `model.keras` (Keras's own layers, no code), `labels.json` (the labels of its"
    yield "outputs, in their order), `metrics.json`, `runs.json`, and the report `index.html`."
    yield ""
    if run["takes"] == "vectors":
        yield f"Input: float32 vectors, (n, {run['backbone']['dimension']}), of the backbone above."
    else:
        side = run["backbone"]["image_size"]
        yield f"Input: uint8 RGB pictures, (n, {side}, {side}, 3), framed as the backbone's."
    yield f"Output: float32 probabilities, (n, {len(run['labels'])})."
    yield ""
    yield "- to compare it with the classifier in production, and put it there: `lookalike classify promote`"
    yield "- to serve the one in production over HTTP: `lookalike classify serve`"
    yield ""
    device = "the CPU" if run["device"] == "cpu" else f"a GPU ({plain(run['device'])})"
    yield f"To train it again: the parameters above as {_code(run['name'] + '.json')}, the same labelled pictures with"
    yield f"HELD_OUT={run['held_out_share']:g}, and `lookalike classify train {run['name']}.json`. It was trained on"
    yield f"{device}."


def _named(labels: Sequence[str]) -> str:
    shown = ", ".join(map(plain, labels[:_MOST_EXAMPLES]))
    return f"{shown} and {len(labels) - _MOST_EXAMPLES:,} more" if len(labels) > _MOST_EXAMPLES else shown


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _code(given: str) -> str:
    """A name or a hash as code."""
    return f"`{visible(given).replace('`', chr(0x2CB))}`"
