"""A segment of the index as the stage search opens it: its table at once, of its vectors what a search needs.

Few queries are answered by a first look at the vectors in 8 bits, which rules out nearly all rows, so that the files of
few pieces are read; more queries, and approximate ones, by all vectors. The answers are equal to the last bit. Knows no
entries.
"""

from collections.abc import Mapping

import numpy as np

from stages.datum.contract import DatumInput
from stages.files import segment_files, vector_files
from stages.knn import bounded_search, coarse_rows
from stages.knn.backend import Mask, Rows
from stages.knn.coarse_rows import CoarseRows
from stages.knn.code_index import CodeFacts, CodeIndex, CodeSearcher
from stages.knn.joint_queries import JointQueries, LibraryPart
from stages.knn.search_settings import SearchSettings
from stages.knn.searcher_factory import open_bounding, open_searcher
from stages.knn.top_k import NONE, Searcher, TopK, itself_first
from stages.knn.vector_set import VectorSet

_DOUBTFUL = 4
"""Rows beyond k that a first look leaves for a query, of most libraries."""

_ROW = 400
"""Bytes that the table takes for a picture, once it is read."""


class SegmentSearch:
    """An open segment: its name, its pictures, the row of each id, and its size in bytes once all of it is read.

    Its input may be lazy. It is kept for further datums with equal inputs, and each call gets the input of its own
    datum, in which what was read before is not opened again.
    """

    def __init__(self, index: DatumInput, chosen: SearchSettings, environment: Mapping[str, str]) -> None:
        """Raises StageError for anything that the index stage did not write."""
        self.name = segment_files.name_of(index)
        self.images = segment_files.read_table(index)
        self.rows: Mapping[str, int] = {id: row for row, id in enumerate(self.images.ids)}
        self._chosen = chosen
        self._environment = environment
        self._vectors = segment_files.lazy_points(index, self.images.vectors, self.images.origin.dimension)
        self._coarse: CoarseRows | None = None
        self._whole: tuple[VectorSet, Searcher] | None = None
        copies = 1 if chosen.metric == "euclidean" else 2  # "cosine" has a copy in unit length
        self.size = len(self.images) * (4 * self.images.origin.dimension * copies + _ROW)

    def nearest(self, index: DatumInput, points: VectorSet, itself: Rows, within: Mask | None = None) -> TopK:
        """The k nearest of each query; one that is in the library is its own first neighbour, at distance 0.

        itself: int64 (m,), the row of each query, or NONE. within: bool (n,), the only pictures that may be neighbours,
        which are found exactly, whatever the algorithm is. Raises StageError as `read_points` does, and for vectors
        that have no distances.
        """
        k = self._chosen.k
        if within is not None:
            itself = np.where((itself != NONE) & within[itself], itself, NONE)
        coarse = self._first_look(index, len(points) * (k + _DOUBTFUL))
        if coarse is not None:
            found = coarse_rows.nearest(coarse, points, k, itself, lambda rows: self._some(index, rows), within)
        elif within is None:
            found = self._all(index)[1].search(points, k, exclude=itself)
        else:
            library = self._all(index)[0]
            parts = [LibraryPart(0, library, open_bounding(library.prepared))]
            found = bounded_search.nearest(parts, JointQueries.single(points, itself), k, within)
        return itself_first(found, itself, min(k, len(self.images) if within is None else int(within.sum())))

    def _first_look(self, index: DatumInput, rows: int) -> CoarseRows | None:
        """The vectors in 8 bits, if there are any, and if reading these and so many rows is less than reading all."""
        chosen = self._chosen
        if self._whole is not None or chosen.algorithm != "exact" or chosen.backend not in ("auto", "numpy"):
            return None
        if rows > len(self.images.vectors.files) / 2:
            return None
        if self._coarse is None:
            self._coarse = segment_files.read_coarse(index, len(self.images), self.images.origin.dimension)
        return self._coarse if self._coarse is not None and self._coarse.usable else None

    def _some(self, index: DatumInput, rows: Rows) -> VectorSet:
        vectors = self._vectors.fetched(index.path / vector_files.DIRECTORY, "index", rows)
        return VectorSet(vectors, self._chosen.metric, self.images.ids, checked=True)  # by their lengths in 8 bits

    def _all(self, index: DatumInput) -> tuple[VectorSet, Searcher]:
        if self._whole is None:
            vectors = self._vectors.fetched(index.path / vector_files.DIRECTORY, "index")
            coded = self._codes(index)
            library = VectorSet(vectors, self._chosen.metric, self.images.ids, checked=coded is not None)  # by index
            searcher = (
                CodeSearcher(library, *coded) if coded else open_searcher(library, self._chosen, self._environment)
            )
            self._whole = library, searcher
            self._coarse = None
        return self._whole

    def _codes(self, index: DatumInput) -> tuple[CodeIndex, CodeFacts] | None:
        """The codes for an approximate search; None for an exact one, and for a segment without such codes."""
        chosen = self._chosen
        if chosen.algorithm == "exact":
            return None
        facts = segment_files.read_facts(index)
        coded = facts.codes
        fitting = coded is not None and (coded.algorithm, coded.metric) == (chosen.algorithm, chosen.metric)
        codes = segment_files.read_codes(index, facts) if fitting else None
        if codes is None or coded is None:
            print(f"{self.name} has no codes {chosen.algorithm} of the {chosen.metric} distance: searching exactly")
            return None
        return codes, coded
