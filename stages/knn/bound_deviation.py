"""Backends that break their error bound: found by rows whose distances are known. Knows no backend.

The certificate of an exact search rests on the bound alone. A kernel that rounds its inputs, as tensor cores do with
TF32, may break it and then gives wrong neighbours that look proven. Arithmetic in float32 keeps the bound, by proof;
that a device computes in float32 can only be tried: on the hardest rows once for a process, dimension and kind of
backend, on some rows of each library, and by an audit of every answer (`CandidateProver`). The same rows show whether
true distances from a card equal those from the processor, and are worth their time.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stages.datum.contract import StageError
from stages.knn.backend import Backend, Distances, Floats, Mask, MeasuringBackend, Rows, Vectors
from stages.knn.vector_set import VectorSet

_COUNTS = (8, 40, 300)
"""Numbers of candidates that are asked for; libraries of GPUs have other kernels for more than 64."""

_ROWS = 2048
"""The most hard rows: so many that a library of them is searched by the same kernels as a large one."""

_ASKED = 64
"""Queries; of the library, as many are spread over its rows."""

_TRIED = 1 << 14
"""The most rows of a library that are compared with what a backend says, beside those that it returns: more cost more
than a search, and take part in the same kernels."""

_AT_ONCE = 1 << 22
"""Float64 numbers of the library in memory at once."""

_WORTH = 5
"""How many times as fast as the processor a card has to measure, since the processor measures only a few candidates of
each query."""

_LARGEST = float(np.finfo(np.float32).max) / 8
_MARGIN = 1e-9  # of the true distances in float64

# TF32 and float16 keep 10 bits of a mantissa, bfloat16 7; kernels round to the nearest, or towards zero.
_BITS = (7, 10)
_BELOW = 1 - 2.0**-6


class BoundDeviationError(StageError):
    """A backend's distances are larger than its error bound allows: nothing that it proposes can be proven."""


@dataclass
class BoundExamination:
    """What one process has examined. passed: the names of backends and the dimensions that did well on hard rows, and
    whether they measured them to the bit."""

    passed: dict[tuple[str, int], bool] = field(default_factory=dict)

    def examine(self, make: Callable[[Vectors], Backend], backend: Backend, library: Vectors) -> bool:
        """Compares what a backend says of hard rows, once, and of some of the library's with the truth. Returns whether
        its true distances are to be used: they are right to the bit, and cost less than the processor's.

        make: gives a backend of the same kind for other vectors. backend: made for library, float32 (n, d). Raises
        BoundDeviationError, and whatever the backend's `candidates` raises.
        """
        dimension = library.shape[1]
        kind = (backend.name, dimension)
        measures = self.passed.get(kind)
        if measures is None:
            hard = hard_rows(dimension, min(_ROWS, max(64, len(library))))
            on_hard = make(hard)
            _check(on_hard, hard)
            measures = speed(on_hard, hard) > 0
            if len(hard) == _ROWS:  # fewer are searched by kernels for small libraries
                self.passed[kind] = measures
        _check(backend, library)
        return measures and speed(backend, library) > _WORTH


def examined_rows(size: int) -> int:
    """The most rows of a library of that size that are compared with the truth when it is opened."""
    return min(size, _TRIED + _ASKED * _COUNTS[-1])


def hard_rows(dimension: int, count: int) -> Vectors:
    """Vectors, float32 (count, dimension), whose products suffer most from rounded inputs: groups of near-duplicates,
    all of whose numbers are rounded the same way."""
    random = np.random.default_rng(0)
    bases = [np.full(dimension, 1 + unit * _BELOW) for bits in _BITS for unit in (2.0**-bits, 2.0 ** -(bits + 1))]
    bases += [np.full(dimension, 0.1), random.uniform(1, 2, dimension), random.normal(size=dimension)]
    groups = np.array([base * scale for base in bases for scale in (1.0, 2.0**-20, 2.0**20)])
    signs = np.where(random.random(dimension) < 0.5, -1.0, 1.0)
    rows = groups[np.arange(count) % len(groups)] * signs
    rows *= 1 + 2.0**-22 * random.integers(-1, 2, rows.shape)
    hard: Vectors = rows.astype(np.float32)
    return hard


def excess(backend: Backend, library: Vectors, queries: Vectors, counts: Sequence[int]) -> float:
    """The most by which a backend puts a row further away than it is, as a share of |q|² + |x|²; its bound allows
    `rounding.relative`. A row that it does not return is as far as the furthest that it returns.

    counts: the numbers of candidates to ask for. Looks at the rows that it returns, and at `_TRIED` others.
    """
    answers = [_Answer.asked(backend, queries, count, len(library)) for count in counts]
    double = queries.astype(np.float64)
    mine = np.einsum("ij,ij->i", double, double)
    worst = -np.inf
    looked_at = _rows_to_try(len(library), answers)
    step = max(1, _AT_ONCE // library.shape[1])
    for some in (looked_at[start : start + step] for start in range(0, len(looked_at), step)):
        block = library[some].astype(np.float64)
        sums = mine[:, None] + np.einsum("ij,ij->i", block, block)[None, :]
        squares = _squares(double, block)
        for each in answers:
            said = each.said_of(some)
            over = said - backend.rounding.absolute - squares
            known = (2 * sums < _LARGEST) & (sums > 0) & np.isfinite(said)
            worst = max(worst, float(np.max(over[known] / sums[known], initial=-np.inf)))
    return worst


@dataclass(frozen=True)
class _Answer:
    """The candidates for some queries, and what they say of every other row: float64 (queries,), -inf for nothing."""

    approximate: Distances
    rows: Rows
    usable: Mask
    beyond: Floats

    @classmethod
    def asked(cls, backend: Backend, queries: Vectors, count: int, size: int) -> "_Answer":
        with np.errstate(over="ignore"):
            approximate, rows = backend.candidates(queries, count)
        usable = (rows >= 0) & np.isfinite(approximate)
        furthest = np.where(usable, approximate, -np.inf).max(axis=1).astype(np.float64)
        return cls(approximate, rows, usable, np.where(usable.all(axis=1) & (count < size), furthest, -np.inf))

    def said_of(self, some: Rows) -> Floats:
        """The least squared distances of rows, ascending, by this answer: float64 (queries, rows)."""
        said = self.beyond[:, None].repeat(len(some), axis=1)
        place = np.searchsorted(some, self.rows)
        inside = self.usable & (some[np.minimum(place, len(some) - 1)] == self.rows)
        query, column = np.nonzero(inside)
        said[query, place[query, column]] = self.approximate[query, column]
        return said


def _rows_to_try(size: int, answers: Sequence[_Answer]) -> Rows:
    """The rows that were returned, and others spread over the library, ascending."""
    spread = np.unique(np.linspace(0, size - 1, min(size, _TRIED)).astype(np.int64))
    returned = [each.rows[each.usable] for each in answers]
    tried: Rows = np.unique(np.concatenate([spread, *returned]))
    return tried


def speed(backend: Backend, library: Vectors) -> float:
    """How many times as fast as the processor a backend measures candidates; 0 if any distance differs, or it cannot
    measure."""
    if not isinstance(backend, MeasuringBackend):
        return 0
    queries, count = library[_asked(library)], min(_COUNTS[1], len(library))
    began = time.perf_counter()
    backend.candidates(queries, count)
    proposed = time.perf_counter()
    try:
        _, rows, true = backend.measured(queries, count)
    except Exception:  # of CUDA, CuPy and its compiler: the processor measures then
        return 0
    measured = time.perf_counter()
    query = np.repeat(np.arange(len(queries)), count)
    right = VectorSet(queries, checked=True).distances(query, VectorSet(library, checked=True), rows.reshape(-1))
    processor = time.perf_counter() - measured
    if true is None or not np.array_equal(right, true.reshape(-1)):
        return 0
    return processor / max(measured - 2 * proposed + began, 1e-9)


def _asked(library: Vectors) -> Rows:
    rows: Rows = np.unique(np.linspace(0, len(library) - 1, _ASKED).astype(np.int64))
    return rows


def _check(backend: Backend, library: Vectors) -> None:
    queries = library[_asked(library)]
    found = excess(backend, library, queries, sorted({min(count, len(library)) for count in _COUNTS}))
    if found > backend.rounding.relative + _MARGIN:
        raise BoundDeviationError(
            f"{backend.name} computes squared distances that are too large by up to {found:.1e} of |q|² + |x|², "
            f"and {backend.rounding.relative:.1e} is the most that float32 arithmetic explains: its answers cannot "
            "be proven. Use BACKEND=numpy or faiss"
        )


def _squares(queries: Floats, block: Floats) -> Floats:
    """All squared distances. The expansion is precise enough: its error is below `_MARGIN`."""
    squares: Floats = np.einsum("ij,ij->i", queries, queries)[:, None] + np.einsum("ij,ij->i", block, block)[None, :]
    squares -= 2 * (queries @ block.T)
    return squares
