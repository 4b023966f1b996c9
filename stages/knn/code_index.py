"""Codes of a library in an inverted file, made once and searched often: candidates without reading all vectors.

A library of a million pictures is read in 60 ms only where memory is fast. Its codes are divided into lists, of which a
search visits a part, and what is proposed is ranked by the true distances, so only the choice is approximate. With
"ivfflat" each number of a vector has 8 bits, a quarter of its size: the vectors themselves are in a file beside, and
would be stored twice. With "ivfpq" a vector has up to 64 bytes.

The file is a function of the vectors alone: training takes a fixed number of rows, those of the smallest ids, which
are hashes and so a fair sample; it starts from a fixed seed, and runs in one thread, since the sums of several depend
on their number. So one more picture changes the codebook only if its id is among the smallest: one of six in a segment
of 60,000.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from stages.datum.contract import StageError
from stages.knn.backend import Rows, Vectors
from stages.knn.top_k import NONE, Searcher, TopK, empty, merge, stacked
from stages.knn.vector_set import VectorSet

FILE = "codes.bin"

FEWEST = 4096
"""Pictures of a segment that has codes; fewer are searched exactly, which takes a millisecond."""

LISTS, _PROBES = 96, 12
"""The lists of the file, and those of them that a search visits: an eighth of the vectors, however many there are."""

SAMPLE = 10_240
"""The rows that training takes, or all if there are fewer. FAISS asks for 39 for each list, and for each of the 256
entries of a product quantiser's codebook."""

_EXTRA = 28
"""Candidates beyond k whose true distances are computed."""

_QUERY_BLOCK = 4096

_MEASURED, _NEAREST = 200, 10
"""Rows for which the recall is measured, and neighbours of each."""


@dataclass(frozen=True)
class CodeFacts:
    """The facts about codes. algorithm: "ivfflat" or "ivfpq". lists: the parts of the file, of which a search visits
    `probes`. sample: the rows that they were trained on. recall: the share of the ten nearest that are found, measured
    on some rows of the segment."""

    algorithm: str
    metric: str
    lists: int
    probes: int
    sample: int
    recall: float

    def as_data(self) -> Mapping[str, Any]:
        """For index.json."""
        return asdict(self)


def from_data(value: object) -> CodeFacts | None:
    """The facts of index.json; None for none, or for those of another version."""
    try:
        return CodeFacts(**value) if isinstance(value, Mapping) else None
    except TypeError:
        return None


class CodeIndex:
    """Open codes of a library."""

    def __init__(self, index: Any) -> None:
        """index: FAISS's."""
        self._index = index

    def nearest(self, library: VectorSet, queries: VectorSet, k: int, exclude: Rows) -> TopK:
        """The k nearest among the candidates that the codes propose, by true distances: of the library only their
        vectors are read. exclude: see Searcher. Columns are NONE where the visited lists hold too few."""
        _approximate, rows = self._index.search(
            np.ascontiguousarray(queries.prepared), min(k + _EXTRA + 1, len(library))
        )
        query, column = np.nonzero((rows != NONE) & (rows != exclude[:, None]))
        row = rows[query, column]
        return merge(empty(len(queries), k), query, queries.distances(query, library, row), row)


class CodeSearcher:
    """Searches a library by its codes, approximately: see Searcher. report: takes a line on their recall."""

    def __init__(
        self, library: VectorSet, codes: CodeIndex, facts: CodeFacts, report: Callable[[str], None] = print
    ) -> None:
        self._library = library
        self._codes = codes
        self._said = (
            f"codes {facts.algorithm}: approximate, as asked; recall@{_NEAREST} {facts.recall:.4f}, measured by index "
            f"on {_MEASURED} pictures of the segment"
        )
        self._report = report

    def search(self, queries: VectorSet, k: int, exclude: Rows | None = None) -> TopK:
        """See Searcher."""
        queries.must_match(self._library)
        columns = min(k, len(self._library))
        if not len(queries):
            return empty(0, columns)
        if exclude is None:
            exclude = np.full(len(queries), NONE, dtype=np.int64)
        blocks = [slice(start, start + _QUERY_BLOCK) for start in range(0, len(queries), _QUERY_BLOCK)]
        nearest = self._codes.nearest
        found = stacked(nearest(self._library, queries.part(some), columns, exclude[some]) for some in blocks)
        self._report(self._said)
        return found


def write(library: VectorSet, algorithm: str, exact: Searcher, path: Path) -> CodeFacts | None:
    """Writes the codes of a library, and measures them against exact searches of it; None, and no file, for a library
    that is too small."""
    if len(library) < FEWEST:
        return None
    faiss = importlib.import_module("stages.knn.faiss_backend").faiss
    sample = min(len(library), SAMPLE)
    with ThreadpoolController().limit(limits=1):
        index = _trained(faiss, np.ascontiguousarray(library.prepared[:sample]), algorithm)
        index.add(library.prepared)
    index.nprobe = _PROBES
    faiss.write_index(index, str(path))
    recall = _recall(library, CodeIndex(index), exact)
    return CodeFacts(algorithm, library.metric, LISTS, _PROBES, sample, recall)


def open_codes(path: Path, count: int, dimension: int) -> CodeIndex:
    """Maps a file of codes, which may then be deleted. Raises StageError for a file that is not of so many vectors of
    that dimension."""
    faiss = importlib.import_module("stages.knn.faiss_backend").faiss
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    except RuntimeError as error:
        raise StageError(f"{path.name} is not a file of codes: {_AGAIN}") from error
    if (index.ntotal, index.d) != (count, dimension):
        raise StageError(
            f"{path.name} has codes of {index.ntotal} vectors of {index.d} dimensions, not of {count} of "
            f"{dimension}: {_AGAIN}"
        )
    return CodeIndex(index)


_AGAIN = "reprocess the index pipeline: lookalike deploy --reprocess index"


def _trained(faiss: Any, sample: Vectors, algorithm: str) -> Any:
    dimension = sample.shape[1]
    quantiser = faiss.IndexFlatL2(dimension)
    if algorithm == "ivfflat":
        index = faiss.IndexIVFScalarQuantizer(quantiser, dimension, LISTS, faiss.ScalarQuantizer.QT_8bit)
    else:
        bits = next((bits for bits in (8, 6, 5) if len(sample) >= 39 * 2**bits), 4)
        index = faiss.IndexIVFPQ(quantiser, dimension, LISTS, parts_of_vector(dimension), bits)
    index.train(sample)
    return index


def parts_of_vector(dimension: int) -> int:
    """The number of parts that a product quantiser splits a vector into: the largest divisor up to 64."""
    return next(parts for parts in range(min(64, dimension), 0, -1) if dimension % parts == 0)


def _recall(library: VectorSet, codes: CodeIndex, exact: Searcher) -> float:
    rows = np.unique(np.linspace(0, len(library) - 1, _MEASURED).astype(np.int64))
    queries = library.part(rows)
    true = exact.search(queries, _NEAREST, rows)
    found = codes.nearest(library, queries, _NEAREST, rows)
    wanted = true.rows != NONE
    hit = (true.rows[:, :, None] == found.rows[:, None, :]).any(axis=2) & wanted
    return round(float(hit.sum() / wanted.sum()), 4)
