"""The RAPIDS backend: cuML's NearestNeighbors on one NVIDIA GPU. Knows no metric but Euclidean distance.

Imported only if a GPU may be used (see stages.knn.searcher_factory), since importing it starts CUDA. It uses the first
device in CUDA_VISIBLE_DEVICES and no other.

For "sqeuclidean" (cuVS brute force) cuML computes |q|² + |x|² - 2 q·x in float32, either with scalar FMAs or, on tensor
cores, with each number split into two TF32 halves, which costs up to four roundings per multiply-add; the bound allows
for those. Negative distances become zero, as do those with equal norms and d² < 1e-3. Neither makes a distance larger,
so the bound holds (Rounding), but cuML's own order of near pictures is meaningless. Not relied on: its order of ties,
its removal of a vector's own row, and its `two_pass_precision`, which returns squares and (26.10) takes the rows to
compare from the queries instead of the library.

The true distances of the candidates are computed on the card, too: by the very operations in float64 that define them,
each rounded as IEEE 754 prescribes, on the card as on a processor. Every operation is a kernel of its own, so no
compiler joins a product and a sum.
"""

from typing import Any, NamedTuple

import cupy
import numpy as np
from cuml.neighbors import NearestNeighbors

from stages.knn.backend import Distances, RoundingBound, Rows, Vectors, expanded
from stages.knn.card_memory import CardMemory
from stages.knn.top_k import smallest

_ROUNDINGS = 4  # per multiply-add, see above
SHARE = 0.4  # of the memory that others leave is for one library; the search's own tiles and the queries need the rest

_SUMMED, _LANES = 128, 8
"""Of NumPy's pairwise sum: numbers that are added without halving them, and sums that grow side by side."""

_DIFFERENCES = 64 << 20
"""Bytes of float64 differences on the card at once, beside which two temporary arrays take as much. It changes no
distance."""

_CARD = CardMemory(lambda: int(cupy.cuda.runtime.memGetInfo()[0]))


class _CardCopy(NamedTuple):
    """A whole library on the card: cuML's model, which reads these vectors in place."""

    model: Any
    vectors: Any


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
        self.on_card: _CardCopy | None = None
        if self._whole:
            _CARD.use(self)

    def load(self) -> None:
        """Copies the whole library to the GPU."""
        vectors = cupy.asarray(self._library)
        self.on_card = _CardCopy(_fit(vectors), vectors)

    def unload(self) -> None:
        """Lets go of the copy, which is freed with the last reference."""
        self.on_card = None

    @property
    def _whole(self) -> bool:
        return len(self._parts) == 1

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates."""
        if self._whole:
            return _ask(_CARD.use(self).model, queries, count)
        found = [self._in_part(part, queries, count) for part in self._parts]
        distances = np.concatenate([each[0] for each in found], axis=1)
        rows = np.concatenate([each[1] for each in found], axis=1)
        return smallest(distances, rows, count)

    def measured(self, queries: Vectors, count: int) -> tuple[Distances, Rows, Distances | None]:
        """See MeasuringBackend.measured: not for a library in parts, or if the card is too full."""
        if not self._whole:
            return (*self.candidates(queries, count), None)
        copy, asked = _CARD.use(self), cupy.asarray(queries)
        distances, rows = _ask(copy.model, asked, count)
        return distances, rows, self._true(asked, copy.vectors, rows)

    def _true(self, asked: Any, vectors: Any, rows: Rows) -> Distances | None:
        # With the allocator that cuML sets, each temporary array would be one of CUDA's own, which takes longer.
        pool = cupy.cuda.MemoryPool()
        try:
            with cupy.cuda.using_allocator(pool.malloc):
                return true_distances(asked, vectors, rows)
        except MemoryError:
            return None
        finally:
            pool.free_all_blocks()

    def _in_part(self, part: slice, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        distances, rows = _ask(_fit(self._library[part]), queries, min(count, part.stop - part.start))
        return distances, rows + part.start


def true_distances(queries: Any, library: Any, rows: Rows) -> Distances:
    """The distances of each query, float32 (n, d), from its rows, int64 (n, count), of the library, both on the card:
    float32 (n, count)."""
    count = rows.shape[1]
    found = np.empty(rows.size, np.float32)
    on_card = cupy.asarray(rows.reshape(-1))
    step = max(1, _DIFFERENCES // (8 * queries.shape[1]))
    for start in range(0, rows.size, step):
        end = min(start + step, rows.size)
        difference = queries[cupy.arange(start, end) // count].astype(np.float64)
        difference -= library[on_card[start:end]].astype(np.float64)
        difference *= difference
        found[start:end] = cupy.sqrt(pairwise_sums(difference)).astype(np.float32).get()
    return found.reshape(rows.shape)


def pairwise_sums(numbers: Any) -> Any:
    """The sum of each row of numbers that are not negative, float64 (n, d), by NumPy's additions in NumPy's order."""
    count, width = numbers.shape
    half = width // 2 - width // 2 % 8
    if width > _SUMMED and 2 * half == width:
        halves = pairwise_sums(numbers.reshape(2 * count, half)).reshape(count, 2)
        return halves[:, 0] + halves[:, 1]
    if width > _SUMMED:
        return pairwise_sums(numbers[:, :half]) + pairwise_sums(numbers[:, half:])
    whole = width - width % _LANES
    lanes = numbers[:, :_LANES].copy()
    for start in range(_LANES, whole, _LANES):
        lanes += numbers[:, start : start + _LANES]
    while whole and lanes.shape[1] > 1:
        lanes = lanes[:, ::2] + lanes[:, 1::2]
    total = lanes[:, 0].copy()
    for column in range(max(whole, 1), width):
        total += numbers[:, column]
    return total


def _fit(vectors: Any) -> Any:
    return NearestNeighbors(algorithm="brute", metric="sqeuclidean", output_type="numpy").fit(vectors)


def _ask(model: Any, queries: Any, count: int) -> tuple[Distances, Rows]:
    found, indices = model.kneighbors(queries, n_neighbors=count)
    return np.array(found, dtype=np.float32), np.array(indices, dtype=np.int64)
