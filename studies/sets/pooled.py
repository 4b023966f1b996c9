"""A backbone cut before its pooling, and the poolings to put there instead. Knows no picture and no label."""

from collections.abc import Iterator

import keras
import numpy as np
from numpy.typing import NDArray

from stages.backbone.backbones import BATCH

POOLINGS = ("average", "max", "GeM")
_POWER = 3.0  # of the generalised mean (Radenović et al., arXiv:1711.02512); 1 is the average, infinity the maximum
_LEAST = 1e-6


class Pooled:
    """A callable: uint8 (n, S, S, 3) in, the poolings of the backbone's last feature map out, float32
    (len(POOLINGS), n, d)."""

    def __init__(self, backbone: keras.Model, layer: str) -> None:
        """layer: the name of the backbone's own layer of pooling."""
        features = backbone.get_layer(layer).input
        self._model = keras.Model(backbone.input, features)
        self._model.compile(jit_compile=False)

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        return np.concatenate([_poolings(self._forward(batch)) for batch in _batches(pictures)], axis=1)

    def bare(self, pictures: NDArray[np.uint8]) -> None:
        """The forward passes alone: the lower bound of the time."""
        for batch in _batches(pictures):
            self._forward(batch)

    def _forward(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        filled = np.zeros((BATCH, *pictures.shape[1:]), np.uint8)
        filled[: len(pictures)] = pictures
        found: NDArray[np.float32] = np.asarray(self._model.predict_on_batch(filled))[: len(pictures)]
        return found


def _batches(pictures: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    return (pictures[start : start + BATCH] for start in range(0, len(pictures), BATCH))


def _poolings(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of a feature map (n, h, w, d)."""
    over = (1, 2)
    powers = np.maximum(features, _LEAST) ** _POWER
    return np.stack([features.mean(over), features.max(over), powers.mean(over) ** (1 / _POWER)])


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors (..., d) scaled to length 1: their euclidean distances rank as the cosines of the vectors do."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: NDArray[np.float32] = vectors / np.maximum(lengths, _LEAST)
    return scaled
