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
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from stages.datum.contract import StageError
from stages.knn.approximate_searcher import rank_candidates
from stages.knn.backend import Distances, RoundingBound, Rows, Vectors, parts_of_vector
from stages.knn.top_k import NONE, Searcher
from stages.knn.vector_set import VectorSet

FILE = "codes.bin"

FEWEST = 4096
"""Pictures of a segment that has codes; fewer are searched exactly, which takes a millisecond."""

LISTS, _PROBES = 96, 12
"""The lists of the file, and those of them that a search visits: an eighth of the vectors, however many there are."""

SAMPLE = 10_240
"""The rows that training takes, or all if there are fewer. FAISS asks for 39 for each list, and for each of the 256
entries of a product quantiser's codebook."""

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
    """An open file of codes, which proposes candidates: see Backend. They prove nothing."""

    concurrent = False

    def __init__(self, index: Any, algorithm: str, recall: float | None = None) -> None:
        """recall: see Coded; None while it is not known."""
        self.name = f"codes {algorithm}"
        self._recall = recall
        self.rounding = RoundingBound(math.inf, 0)
        self._index = index

    @property
    def stated(self) -> str:
        """The recall in words, as `write` measured it."""
        return f"recall@{_NEAREST} {self._recall:.4f}, measured by index on {_MEASURED} pictures of the segment"

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self._index.d)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates; rows are -1 if the visited lists hold too few."""
        distances, rows = self._index.search(np.ascontiguousarray(queries), count)
        return distances, rows


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
    recall = _recall(library, CodeIndex(index, algorithm), exact)
    return CodeFacts(algorithm, library.metric, LISTS, _PROBES, sample, recall)


def open_codes(path: Path, facts: CodeFacts, count: int, dimension: int) -> CodeIndex:
    """Maps a file of codes, which may then be deleted. Raises StageError for a file that is not of so many vectors of
    that dimension."""
    faiss = importlib.import_module("stages.knn.faiss_backend").faiss
    try:
        codes = CodeIndex(faiss.read_index(str(path), faiss.IO_FLAG_MMAP), facts.algorithm, facts.recall)
    except RuntimeError as error:
        raise StageError(f"{path.name} is not a file of codes: {_AGAIN}") from error
    if (len(codes), codes.dimension) != (count, dimension):
        raise StageError(
            f"{path.name} has codes of {len(codes)} vectors of {codes.dimension} dimensions, not of {count} of "
            f"{dimension}: {_AGAIN}"
        )
    return codes


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


def _recall(library: VectorSet, codes: CodeIndex, exact: Searcher) -> float:
    rows = np.unique(np.linspace(0, len(library) - 1, _MEASURED).astype(np.int64))
    queries = library.part(rows)
    true = exact.search(queries, _NEAREST, rows)
    found = rank_candidates(library, codes, queries, _NEAREST, rows)
    wanted = true.rows != NONE
    hit = (true.rows[:, :, None] == found.rows[:, None, :]).any(axis=2) & wanted
    return round(float(hit.sum() / wanted.sum()), 4)
