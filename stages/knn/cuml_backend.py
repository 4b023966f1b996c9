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

import warnings
from typing import Any

import cupy
import numpy as np
from cuml.neighbors import NearestNeighbors

from stages.knn.backend import Distances, RoundingBound, Rows, Vectors, expanded, parts_of_vector
from stages.knn.row_minima import smallest

_ROUNDINGS = 4  # per multiply-add, see above
SHARE = 0.4  # of the free GPU memory is for the library; the search's own tiles and the queries need the rest


class CumlBackend:
    """Brute force or, with algorithm "ivfflat" or "ivfpq", an approximate index over a library copied to the GPU.

    A library that does not fit into the GPU's free memory is copied in parts at each call.
    """

    concurrent = False

    def __init__(self, library: Vectors, algorithm: str = "exact", share: float = SHARE) -> None:
        """library: float32 (n, d), C order. Raises RuntimeError (CUDA's) if no device is usable."""
        self.name = "cuml" if algorithm == "exact" else f"cuml {algorithm}"
        self._algorithm = "brute" if algorithm == "exact" else algorithm
        self._library = library
        self.rounding: RoundingBound = (
            expanded(library.shape[1], growth=_ROUNDINGS) if algorithm == "exact" else RoundingBound(float("inf"), 0)
        )
        free, _total = cupy.cuda.runtime.memGetInfo()
        rows = max(1, int(free * share) // (4 * library.shape[1]))
        self._parts = [slice(start, min(start + rows, len(library))) for start in range(0, len(library), rows)]
        self._only = self._fit(self._parts[0]) if len(self._parts) == 1 else None

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates."""
        if self._only is not None:
            return self._ask(self._only, self._parts[0], queries, count)
        found = [self._ask(self._fit(part), part, queries, count) for part in self._parts]
        distances = np.concatenate([each[0] for each in found], axis=1)
        rows = np.concatenate([each[1] for each in found], axis=1)
        return smallest(distances, rows, count)

    def _fit(self, part: slice) -> Any:
        library = self._library[part]
        parameters = None if self._algorithm == "brute" else _cells(self._algorithm, *library.shape)
        model = NearestNeighbors(
            algorithm=self._algorithm, metric="sqeuclidean", algo_params=parameters, output_type="numpy"
        )
        with warnings.catch_warnings():
            # Newer versions rename the parameters of approximate indexes but accept the old names, too.
            warnings.simplefilter("ignore", FutureWarning)
            return model.fit(library)

    def _ask(self, model: Any, part: slice, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        size = part.stop - part.start
        found, indices = model.kneighbors(queries, n_neighbors=min(count, size))
        distances = np.array(found, dtype=np.float32)
        rows = np.array(indices, dtype=np.int64)
        missing = (rows < 0) | (rows >= size)  # an approximate index pads with invalid row numbers
        distances[missing] = np.inf
        return distances, np.where(missing, -1, rows + part.start)


def _cells(algorithm: str, count: int, dimension: int) -> dict[str, int | bool]:
    cells = max(1, min(round(float(count) ** 0.5), count // 39))
    parameters: dict[str, int | bool] = {"nlist": cells, "nprobe": max(1, cells // 8)}
    if algorithm == "ivfpq":
        parameters |= {"M": parts_of_vector(dimension), "n_bits": 8, "usePrecomputedTables": False}
    return parameters
