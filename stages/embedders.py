"""Owns turning pictures into vectors with a loaded backbone, in batches of one fixed shape. Knows no files."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from stages.backbonespec import BackboneSpec
from stages.contract import StageError


class Embedder:
    """A callable: uint8 RGB (n, S, S, 3) in, float32 (n, dimension) out, S and dimension as in the spec.

    A vector depends on its picture alone, bit for bit on one machine: libraries choose other kernels, and so another
    order of summing, for another shape of batch, so every batch has the same shape and the last one is filled up.
    """

    def __init__(self, model: keras.Model, spec: BackboneSpec) -> None:
        # XLA on the CPU is many times slower for these models, and its fusions would be part of the result.
        model.compile(jit_compile=False)
        self._model = model
        self.spec = spec

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Raises StageError if the pictures have another size, or the model gives values that are not finite."""
        size, batch = self.spec.image_size, self.spec.batch
        if pictures.dtype != np.uint8 or pictures.shape[1:] != (size, size, 3):
            raise StageError(
                f"the pictures are {pictures.dtype} {pictures.shape[1:]}, but {self.spec.name} takes uint8 "
                f"({size}, {size}, 3)"
            )
        vectors = np.empty((len(pictures), self.spec.dimension), np.float32)
        for begin in range(0, len(pictures), batch):
            vectors[begin : begin + batch] = self._forward(pictures[begin : begin + batch])
        return vectors

    def _forward(self, pictures: NDArray[np.uint8]) -> NDArray[Any]:
        filled = np.zeros((self.spec.batch, *pictures.shape[1:]), np.uint8)
        filled[: len(pictures)] = pictures
        vectors: NDArray[Any] = np.asarray(self._model.predict_on_batch(filled))[: len(pictures)]
        if not np.isfinite(vectors).all():
            raise StageError(
                f"the model {self.spec.name} gives values that are not finite (NaN or infinity) for some picture; "
                "such vectors have no distance: push another model"
            )
        return vectors
