"""The scikit-learn backend: the reference, as in the original system. Knows no metric but Euclidean distance.

scikit-learn converts float32 to float64 block by block and multiplies in float64. In units of ε (|q|² + |x|²), measured
as in stages.knn.faiss_backend with scikit-learn 1.9.1, its distances exceed the true ones by at most 1e-8, and by 0.95
after the one rounding to float32 here; the bound used is 2.
"""

import numpy as np
from sklearn.neighbors import NearestNeighbors

from stages.knn.backend import DOUBLE, SINGLE, Distances, RoundingBound, Rows, Vectors, expanded


class SklearnBackend:
    """NearestNeighbors, brute force."""

    name = "sklearn"
    concurrent = False

    def __init__(self, library: Vectors) -> None:
        """library: float32 (n, d), C order."""
        self._model = NearestNeighbors(algorithm="brute", metric="sqeuclidean").fit(library)
        bound = expanded(library.shape[1], DOUBLE)
        # A squared distance is at most twice the sum of the squared norms; it is rounded to float32 once.
        self.rounding = RoundingBound(bound.relative + 4 * SINGLE, bound.absolute)

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates."""
        distances, rows = self._model.kneighbors(queries, n_neighbors=count)
        with np.errstate(over="ignore"):  # infinite then, so not trusted
            return np.asarray(distances, dtype=np.float32), np.asarray(rows, dtype=np.int64)
