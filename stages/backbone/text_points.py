"""Words as points among the vectors of pictures: a text's, and what is left of a point without other words.

The one definition, of the pipelines and of the service. Knows no tower but by its vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stages.backbone.backbone_spec import BackboneSpec
from stages.datum.contract import StageError
from stages.knn.backend import Vectors

if TYPE_CHECKING:  # most models have none
    from stages.backbone.text_tower import TextTower

_SHARE = 0.5
"""Of the words that are taken away, beside the point that they are taken from. All of one unit vector can leave nothing
of another; half of it never does."""


def text_points(tower: TextTower, texts: Sequence[tuple[str, Sequence[str]]]) -> Vectors:
    """The points of n texts, each without others, float32 (n, d), of length 1."""
    points = [without(tower.embed([text]), tower.embed(others)) for text, others in texts]
    return np.concatenate(points) if points else np.empty((0, tower.dimension), np.float32)


def without(points: Vectors, words: Vectors) -> Vectors:
    """Points (n, d) less half of the mean of m vectors of words, (m, d) and of length 1; float32, of length 1. Without
    words the points as they are."""
    if not len(words):
        return points
    lengths = np.linalg.norm(points.astype(np.float64), axis=1, keepdims=True)
    left = points / np.maximum(lengths, np.finfo(np.float64).tiny) - _SHARE * words.astype(np.float64).mean(axis=0)
    found: Vectors = (left / np.linalg.norm(left, axis=1, keepdims=True)).astype(np.float32)
    return found


def check(tower: TextTower, spec: BackboneSpec) -> None:
    """Raises StageError for a tower whose vectors are not among those of the model's pictures."""
    if tower.dimension != spec.dimension:
        raise StageError(
            f"the text tower gives vectors of {tower.dimension} numbers, and the model {spec.name} gives "
            f"{spec.dimension}: they do not belong together. Push both again with `lookalike model push`"
        )
