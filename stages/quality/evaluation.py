"""The results of an evaluation as JSON values: measures, labels, confusions, what was left out, and the calibration.

Knows no files and no markup. All numbers are rounded, so that the order of sums does not show in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from stages.quality import calibration, measures, ranking_verdicts, wilson_interval
from stages.quality.measures import MeanEstimate, rounded
from stages.quality.ranking_verdicts import RankingVerdicts

MOST_CONFUSIONS = 100
MOST_SHOWN = 24
"""Most labels of the matrix of confusions."""

NO_LABELS = (
    "no picture of the library has a label: give some with `lookalike evaluate --labels FILE.csv`, or take those of "
    "their folders with `lookalike evaluate --labels-from-folders`"
)
_ALONE = "every label has one picture only: nothing can be right, so give at least two pictures the same label"
_ONE = "all labelled pictures have the label {label!r}: any answer is right, so give some pictures another label"
_UNKNOWN = (
    "none of the labelled sources ({count:,}) is in the library: name them as result sheets do, such as {example!r}, "
    "not {given!r}"
)
_NOT_KNOWN = (
    "no labelled picture has another one among its nearest: label more pictures, or keep more neighbours with "
    "`lookalike deploy --set K=50`"
)


def metrics(verdicts: RankingVerdicts, left_out: Mapping[str, Any]) -> dict[str, Any]:
    """The measures with all that was left out of them; `note` is the reason for which there are none, or "". left_out:
    the values of the stage evaluate."""
    judged, ks = verdicts.judged, measures.ranks(verdicts.rankings.k)
    counted = judged.part(judged.counts)
    found: dict[str, Any] = {
        "facts": verdicts.rankings.facts,
        "pictures": left_out["pictures"],
        "labelled": left_out["labelled"],
        "labels": len(verdicts.names),
        "queries": len(counted),
        "note": note(verdicts, left_out),
        "left_out": {**left_out, **_uncounted(verdicts)},
        "ks": ks,
    }
    if not len(counted):
        return found
    estimates = measures.estimate(counted, ks)
    return found | {
        "shallow": {str(each): int((counted.depths < each).sum()) for each in ks},
        "micro": {name: _interval(each) for name, each in estimates.micro.items()},
        "macro": {name: _interval(each) for name, each in estimates.macro.items()},
        "resamples": estimates.resamples,
        "per_label": _per_label(verdicts, ks),
        "confusions": _confusions(verdicts),
        "matrix": _matrix(verdicts),
    }


def note(verdicts: RankingVerdicts, left_out: Mapping[str, Any]) -> str:
    """The sentence that says what to do if the measures say nothing; "" if they do."""
    unknown = left_out["unknown"]
    if not len(verdicts.judged):
        if unknown["count"] and left_out["example"]:
            return _UNKNOWN.format(count=unknown["count"], example=left_out["example"], given=unknown["examples"][0])
        return NO_LABELS
    if len(verdicts.names) == 1 and len(verdicts.judged) > 1:
        return _ONE.format(label=verdicts.names[0])
    if not (verdicts.judged.relevant > 0).any():
        return _ALONE
    return "" if verdicts.judged.counts.any() else _NOT_KNOWN


def calibrated(verdicts: RankingVerdicts) -> dict[str, Any]:
    """The calibration of the distances: knots, blocks, bins, thresholds, at most `reach`, to
    which half of the rankings know all pairs (None for any distance); `proposed` is the threshold for `PROPOSED`."""
    distances, same = ranking_verdicts.pairs(verdicts)
    blocks, reach = calibration.blocks(distances, same), ranking_verdicts.reach(verdicts)
    thresholds = calibration.thresholds(distances, same, reach, calibration.PROBABILITIES)
    stated = [asdict(each) | {"share": rounded(each.share), "recall": rounded(each.recall)} for each in thresholds]
    return {
        "facts": verdicts.rankings.facts,
        "pairs": len(distances),
        "same": int(same.sum()),
        "reach": None if np.isinf(reach) else reach,
        "knots": [[distance, rounded(share)] for distance, share in calibration.knots(blocks)],
        "blocks": [
            {"from": each.low, "to": each.high, "probability": rounded(each.probability), "pairs": each.pairs}
            for each in blocks
        ],
        "bins": [
            {"from": rounded(each.low), "to": rounded(each.high), "pairs": each.pairs, "same": each.same}
            for each in calibration.bins(distances, same)
        ],
        "thresholds": stated,
        "proposed": next(each for each in stated if each["probability"] == calibration.PROPOSED),
    }


def _uncounted(verdicts: RankingVerdicts) -> dict[str, Any]:
    """The labelled pictures that are not queries: the only ones of their labels, and those without a known
    neighbour."""
    judged = verdicts.judged
    single = judged.relevant == 0
    names = [verdicts.names[code] for code in sorted({*judged.labels[single].tolist()})]
    return {
        "single": {"count": int(single.sum()), "examples": names[:MOST_SHOWN]},
        "alone": {"count": int(((judged.depths == 0) & ~single).sum())},
    }


def _per_label(verdicts: RankingVerdicts, ks: Sequence[int]) -> list[dict[str, Any]]:
    """The labels with queries, those with the least precision first."""
    judged = verdicts.judged
    pictures = np.bincount(judged.labels, minlength=len(verdicts.names))
    counted = judged.part(judged.counts)
    names, values = measures.names(ks), measures.measure(counted, ks)
    order = np.argsort(counted.labels, kind="stable")
    labels, starts, numbers = np.unique(counted.labels[order], return_index=True, return_counts=True)
    means = np.add.reduceat(values[order], starts) / numbers[:, None]
    firsts = np.add.reduceat(counted.right[order, 0].astype(np.int64), starts)
    rows = [
        {
            "label": verdicts.names[label],
            "pictures": int(pictures[label]),
            "queries": int(number),
            **{name: rounded(value) for name, value in zip(names, mean, strict=True)},
            "interval": _interval(MeanEstimate(*wilson_interval.wilson(int(first), int(number)))),
        }
        for label, number, mean, first in zip(
            labels.tolist(), numbers.tolist(), means.tolist(), firsts.tolist(), strict=True
        )
    ]
    return sorted(rows, key=lambda row: (row["precision@1"], row[names[-2]], row["label"]))


def _confusions(verdicts: RankingVerdicts) -> list[dict[str, Any]]:
    sources = verdicts.rankings.sources
    return [
        {
            "label": verdicts.names[each.label],
            "taken_for": verdicts.names[each.other],
            "nearest": each.nearest,
            "among": each.among,
            "example": {
                "source": sources[each.query],
                "neighbour": sources[each.neighbour],
                "distance": each.distance,
            },
        }
        for each in ranking_verdicts.confusions(verdicts)[:MOST_CONFUSIONS]
    ]


def _matrix(verdicts: RankingVerdicts) -> dict[str, Any]:
    """The neighbours by the query's label and their own. If there are many labels, those that are confused most; the
    last row and column are all others."""
    counted = verdicts.judged.labels[verdicts.judged.counts]
    there = sorted({*counted.tolist()})
    if len(there) > MOST_SHOWN:
        wrong = np.zeros(len(verdicts.names), np.int64)
        for each in ranking_verdicts.confusions(verdicts):
            wrong[[each.label, each.other]] += each.among
        there = sorted(sorted(there, key=lambda label: (-wrong[label], label))[:MOST_SHOWN])
    counts = ranking_verdicts.matrix(verdicts, there)
    rest = bool(counts[-1].any() or counts[:, -1].any())
    end = len(counts) if rest else len(there)
    names = [verdicts.names[label] for label in there]
    return {"labels": names, "others": rest, "rows": counts[:end, :end].tolist()}


def _interval(estimate: MeanEstimate) -> dict[str, float]:
    return {name: rounded(value) for name, value in asdict(estimate).items()}
