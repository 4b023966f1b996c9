"""The RAPIDS backend: cuML's NearestNeighbors on one NVIDIA GPU. Knows no metric but Euclidean distance.

Imported only if a GPU may be used (see stages.knn.searcher_factory), since importing it starts CUDA. It uses the first
device in CUDA_VISIBLE_DEVICES and no other.

For "sqeuclidean" (cuVS brute force) cuML computes |q|² + |x|² - 2 q·x in float32, either with scalar FMAs or, on tensor
cores, with each number split into two TF32 halves, which costs up to four roundings per multiply-add; the bound allows
for those. Negative distances become zero, as do those with equal norms and d² < 1e-3. Neither makes a distance larger,
so the bound holds (Rounding), but cuML's own order of near pictures is meaningless. Not relied on: its order of ties,
its removal of a vector's own row, and its `two_pass_precision`, which returns squares and (26.10) takes the rows to
compare from the queries instead of the library.
"""

from typing import Any

import cupy
import numpy as np
from cuml.neighbors import NearestNeighbors

from stages.knn.backend import Distances, RoundingBound, Rows, Vectors, expanded
from stages.knn.card_memory import CardMemory
from stages.knn.row_minima import smallest

_ROUNDINGS = 4  # per multiply-add, see above
SHARE = 0.4  # of the memory that others leave is for one library; the search's own tiles and the queries need the rest

_CARD = CardMemory(lambda: int(cupy.cuda.runtime.memGetInfo()[0]))


class CumlBackend:
    """Brute force over a library copied to the GPU, in parts at each call if it does not fit into its share of the
    memory. A library that fits stays there until others are used (stages.knn.card_memory)."""

    name = "cuml"
    concurrent = False

    def __init__(self, library: Vectors, share: float = SHARE) -> None:
        """library: float32 (n, d), C order. Raises RuntimeError (CUDA's) if no device is usable."""
        self._library = library
        self.rounding: RoundingBound = expanded(library.shape[1], growth=_ROUNDINGS)
        self.size = library.nbytes
        rows = max(1, int(_CARD.available() * share) // (4 * library.shape[1]))
        self._parts = [slice(start, min(start + rows, len(library))) for start in range(0, len(library), rows)]
        self._model: Any = None
        if self._whole:
            _CARD.use(self)

    @property
    def on_card(self) -> Any:
        """The model with the whole library, or None."""
        return self._model

    def load(self) -> None:
        """Copies the whole library to the GPU."""
        self._model = self._fit(self._parts[0])

    def unload(self) -> None:
        """Lets go of the copy, which cuML frees with the last reference."""
        self._model = None

    @property
    def _whole(self) -> bool:
        return len(self._parts) == 1

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates."""
        if self._whole:
            return self._ask(_CARD.use(self), self._parts[0], queries, count)
        found = [self._ask(self._fit(part), part, queries, count) for part in self._parts]
        distances = np.concatenate([each[0] for each in found], axis=1)
        rows = np.concatenate([each[1] for each in found], axis=1)
        return smallest(distances, rows, count)

    def _fit(self, part: slice) -> Any:
        return NearestNeighbors(algorithm="brute", metric="sqeuclidean", output_type="numpy").fit(self._library[part])

    def _ask(self, model: Any, part: slice, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        found, indices = model.kneighbors(queries, n_neighbors=min(count, part.stop - part.start))
        return np.array(found, dtype=np.float32), np.array(indices, dtype=np.int64) + part.start
