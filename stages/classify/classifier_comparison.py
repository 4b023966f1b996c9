"""A candidate compared with the current classifier, picture by picture: accuracies, their difference with its interval,
McNemar's test, the labels that differ.

NumPy alone; knows no network and no files. A picture with a label that a classifier does not know counts as wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.classify.held_out_pictures import HeldOutPictures
from stages.classify.training.run_records import FORMAT, AccuracyScore, backbone_data
from stages.classify.training.training_pixels import LARGEST
from stages.quality import ranking_comparison
from stages.quality.picture_labels import SAMPLE
from stages.record.origin import Origin

_NONE = (
    "no labelled picture is held out from the trainings, so nothing can be measured: set HELD_OUT above 0 in the "
    "specification of labelled, or label more pictures"
)


@dataclass(frozen=True)
class ClassifierPredictions:
    """A classifier with its predictions. labels: those that it knows. by_thumbnails: whether it was given thumbnails,
    not the vectors of the library."""

    run: str
    labels: Sequence[str]
    predicted: Sequence[str]
    origin: Origin
    by_thumbnails: bool


def compare_classifiers(
    unseen: HeldOutPictures, candidate: ClassifierPredictions, current: ClassifierPredictions | None
) -> dict[str, Any]:
    """The comparison as JSON values. Differences, first, p and macro are None without a current classifier or without
    pictures; `note` is then the reason, or "" if there is no current one."""
    sides = {"candidate": candidate} | ({} if current is None else {"current": current})
    right = {name: _right(unseen, each) for name, each in sides.items()}
    found: dict[str, Any] = {
        "format": FORMAT,
        "pictures": len(unseen),
        "share": unseen.share,
        "note": "" if len(unseen) else _NONE,
        "cautions": [caution for name, each in sides.items() for caution in _cautions(name, each, unseen)],
        "candidate": _model(unseen, candidate, right["candidate"]),
        "current": None if current is None else _model(unseen, current, right["current"]),
        "per_label": _per_label(unseen, sides, right),
        **dict.fromkeys(("difference", "low", "high", "p", "first", "macro")),
    }
    return found if current is None or not len(unseen) else found | _difference(unseen, **right)


def _difference(
    unseen: HeldOutPictures, candidate: npt.NDArray[np.bool_], current: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    """The candidate's accuracy less the current one's; in macro all labels count alike."""
    labels = np.unique(np.asarray(unseen.labels, object), return_inverse=True)[1]
    a, b = (each.astype(np.float64)[:, None] for each in (current, candidate))
    micro, macro, _ = ranking_comparison.differences(a, b, labels)
    first = ranking_comparison.firsts(current, candidate)
    return {
        **{name: micro[0][name] for name in ("difference", "low", "high")},
        "macro": {name: macro[0][name] for name in ("difference", "low", "high")},
        "p": first["chance"],
        "first": {
            "both": first["both"],
            "only_candidate": first["only_b"],
            "only_current": first["only_a"],
            "neither": first["neither"],
        },
    }


def _right(unseen: HeldOutPictures, side: ClassifierPredictions) -> npt.NDArray[np.bool_]:
    return np.fromiter(
        (own == predicted for own, predicted in zip(unseen.labels, side.predicted, strict=True)), np.bool_, len(unseen)
    )


def _model(unseen: HeldOutPictures, side: ClassifierPredictions, right: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """A classifier's accuracy, and the pictures whose labels it does not know, with SAMPLE of these labels."""
    score = AccuracyScore.counted(int(right.sum()), len(unseen))
    known = {*side.labels}
    foreign = Counter(label for label in unseen.labels if label not in known)
    empty = {"right": 0, "of": 0, "accuracy": None, "low": None, "high": None}
    return {
        "run": side.run,
        **(empty if score is None else asdict(score)),
        "labels": len(side.labels),
        "backbone": backbone_data(side.origin),
        "input": "thumbnails" if side.by_thumbnails else "vectors",
        "unknown": {"pictures": foreign.total(), "count": len(foreign), "labels": sorted(foreign)[:SAMPLE]},
    }


def _cautions(name: str, side: ClassifierPredictions, unseen: HeldOutPictures) -> Iterator[str]:
    """What makes a figure less certain than it looks, in sentences without their ends."""
    own, ours = side.origin, unseen.origin
    named = "the candidate" if name == "candidate" else "the current model"
    if (own.image_size, own.fit) != (ours.image_size, ours.fit):
        yield (
            f"{named} was trained on pictures of {own.image_size} px ({own.fit}), and the library now has "
            f"{ours.image_size} px ({ours.fit}): other pictures were held out then, so it may have seen some of these, "
            "and its accuracy may be too high"
        )
    if side.by_thumbnails and own.image_size > LARGEST:
        yield (
            f"{named} takes pictures of {own.image_size} px, and was given thumbnails of {LARGEST} px, scaled up: "
            "its accuracy may be too low"
        )


def _per_label(
    unseen: HeldOutPictures, sides: dict[str, ClassifierPredictions], right: dict[str, npt.NDArray[np.bool_]]
) -> list[dict[str, Any]]:
    """Each label with its pictures, and of each classifier the number that is right, None if it does not know the
    label; the labels with the largest differences first."""
    pictures = Counter(unseen.labels)
    hits = {
        name: Counter(label for label, hit in zip(unseen.labels, each.tolist(), strict=True) if hit)
        for name, each in right.items()
    }
    known = {name: {*each.labels} for name, each in sides.items()}
    rows = [
        {
            "label": label,
            "pictures": number,
            **{name: hits[name][label] if label in known[name] else None for name in sides},
        }
        for label, number in pictures.items()
    ]

    def gap(row: dict[str, Any]) -> int:
        return abs((row["candidate"] or 0) - (row.get("current") or 0)) if "current" in sides else 0

    return sorted(rows, key=lambda row: (-gap(row), str(row["label"])))
