"""The scale of a model's distances: what is far and what is near, in words. NumPy alone.

A distance means something else for each model, and nothing to a person. So each model is tried, when it is pushed, on
pictures that are always the same (stages.backbone.reference_pictures), whatever a library holds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.knn.backend import Vectors
from stages.knn.search_settings import METRICS
from stages.knn.vector_set import VectorSet
from stages.quality.distance_limits import DistanceLimits

_CHANGED = 0.95  # of the copies
_VERY_SIMILAR, _SIMILAR = 0.25, 0.5  # of the pairs that are alike, from the nearest on
_CHANCE = 0.001  # of the pairs that are not alike, at most this share is called similar
_UNIT = 1e-3  # of a vector's length, at most, from 1
_DIGITS = 4

_Floats = npt.NDArray[np.float64]
_Pairs = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]


@dataclass(frozen=True)
class DistanceScale:
    """The scale of one model, given by its identity hash. unit: whether its vectors have length 1, so that both metrics
    give one order."""

    model: str
    unit: bool
    euclidean: DistanceLimits
    cosine: DistanceLimits

    def limits(self, metric: str) -> DistanceLimits:
        """The limits in a metric, "euclidean" or "cosine"."""
        return self.cosine if metric == "cosine" else self.euclidean


def measured(model: str, vectors: Vectors, labels: Sequence[str], copies: Vectors, originals: Sequence[int]) -> bytes:
    """The content of a scale.json for the model with this identity hash.

    vectors: float32 (n, d), of the reference pictures. labels: one each; pictures of one label show parts of one scene.
    copies: float32 (m, d), of changed pictures, and originals, the row of each among the vectors.
    """
    scenes = np.asarray(labels)
    first, second = np.triu_indices(len(scenes), 1)
    alike = scenes[first] == scenes[second]
    pairs = (first[alike], second[alike]), (first[~alike], second[~alike])
    lengths = np.linalg.norm(np.concatenate([vectors, copies]).astype(np.float64), axis=1)
    limits = {metric: _limits(metric, vectors, pairs, copies, originals) for metric in METRICS}
    scale = DistanceScale(model, bool(np.abs(lengths - 1).max() <= _UNIT), **limits)
    return json.dumps(asdict(scale), indent=2, sort_keys=True).encode("ascii") + b"\n"


def _limits(
    metric: str, vectors: Vectors, pairs: tuple[_Pairs, _Pairs], copies: Vectors, originals: Sequence[int]
) -> DistanceLimits:
    of, changed = VectorSet(vectors, metric), VectorSet(copies, metric)
    like, unlike = (of.distances(first, of, second) for first, second in pairs)
    own = changed.distances(np.arange(len(copies)), of, np.asarray(originals))
    by_chance = np.quantile(unlike, _CHANCE)
    very, similar = (min(np.quantile(like, share), by_chance) for share in (_VERY_SIMILAR, _SIMILAR))
    return DistanceLimits(*(float(f"{each:.{_DIGITS}g}") for each in (np.quantile(own, _CHANGED), very, similar)))


def read(content: bytes, model: str) -> DistanceScale | None:
    """The scale in a scale.json; None unless it is the scale of the model with this identity hash."""
    try:
        held = json.loads(content)
        limits = {metric: _read_limits(held[metric]) for metric in METRICS}
        scale = DistanceScale(str(held["model"]), bool(held["unit"]), **limits)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return scale if scale.model == model else None


def _read_limits(held: Any) -> DistanceLimits:
    return DistanceLimits(**{each.name: float(held[each.name]) for each in fields(DistanceLimits)})
