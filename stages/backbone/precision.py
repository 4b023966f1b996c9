"""A backbone in mixed precision, which is another model with an identity of its own, and its drift from float32.

Knows no architecture and no files.
"""

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from stages.backbone.export_proof import apart

PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")
"""Keras's names. Mixed: the weights are float32, and the layers compute in the other type."""

_EXACT = (
    keras.layers.InputLayer,
    keras.layers.Rescaling,
    keras.layers.Normalization,
    keras.layers.GlobalAveragePooling2D,
    keras.layers.GlobalMaxPooling2D,
    keras.layers.Flatten,
    keras.layers.UnitNormalization,
)
"""Layers that keep computing in float32: those that scale pixels, and those that make the vector from the last maps."""


@dataclass(frozen=True)
class PrecisionDrift:
    """How far another precision moves the vectors from those of float32.

    kept: share of the k nearest that are the same pictures, 0 to 1. furthest: the largest |v - w| / |v| of a picture's
    two vectors. pictures: how many were compared with each other.
    """

    kept: float
    furthest: float
    k: int
    pictures: int

    def __str__(self) -> str:
        return (
            f"{self.kept:.1%} of the {self.k} nearest of {self.pictures} reference pictures are the same as in "
            f"float32; vectors differ by up to {self.furthest:.2%}"
        )


def in_precision(model: keras.Model, precision: str) -> keras.Model:
    """The functional model with the same weights, whose layers compute in one of PRECISIONS."""

    def another(layer: keras.layers.Layer) -> Any:
        config = layer.get_config()
        if isinstance(layer, keras.layers.Layer) and not isinstance(layer, _EXACT):  # and not an operation
            config["dtype"] = precision
        return type(layer).from_config(config)

    made = keras.models.clone_model(model, clone_function=another)
    made.set_weights(model.get_weights())
    return made


def drift(before: NDArray[np.float32], after: NDArray[np.float32], k: int = 3) -> PrecisionDrift:
    """Compares the vectors, (n, d) with n > k, of the same pictures in two precisions."""
    nearest = [_nearest(each.astype(np.float64), k) for each in (before, after)]
    kept = np.mean([len(np.intersect1d(*rows)) / k for rows in zip(*nearest, strict=True)])
    return PrecisionDrift(float(kept), apart(before, after), k, len(before))


def _nearest(vectors: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    norms = (vectors**2).sum(axis=1)
    squares = norms[:, None] + norms[None, :] - 2 * vectors @ vectors.T
    np.fill_diagonal(squares, np.inf)
    return np.argsort(squares, axis=1, kind="stable")[:, :k]
