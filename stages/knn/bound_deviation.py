"""Backends that break their error bound: found by rows whose distances are known. Knows no backend.

The certificate of an exact search rests on the bound alone. A kernel that rounds its inputs, as tensor cores do with
TF32, may break it and then gives wrong neighbours that look proven.
"""

from collections.abc import Callable

import numpy as np

from stages.datum.contract import StageError
from stages.knn.backend import Backend, Floats, Vectors

_COUNTS = (8, 40, 300)
"""Numbers of candidates that are asked for; libraries of GPUs have other kernels for more than 64."""

_ROWS = 2048
"""The most hard rows: so many that a library of them is searched by the same kernels as a large one."""

_ASKED = 64
"""Queries; of the library, as many are spread over its rows."""

_AT_ONCE = 1 << 22
"""Float64 numbers of the library in memory at once."""

_LARGEST = float(np.finfo(np.float32).max) / 8
_MARGIN = 1e-9  # of the true distances in float64

# TF32 and float16 keep 10 bits of a mantissa, bfloat16 7; kernels round to the nearest, or towards zero.
_BITS = (7, 10)
_BELOW = 1 - 2.0**-6


class BoundDeviationError(StageError):
    """A backend's distances are larger than its error bound allows: nothing that it proposes can be proven."""


def examine(make: Callable[[Vectors], Backend], backend: Backend, library: Vectors) -> None:
    """Compares what a backend says of hard rows and of the library's with the truth.

    make: gives a backend of the same kind for other vectors. backend: made for library, float32 (n, d). Raises
    Deviation, and whatever the backend raises.
    """
    hard = hard_rows(library.shape[1], min(_ROWS, max(64, len(library))))
    _check(make(hard), hard)
    _check(backend, library)


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


def excess(backend: Backend, library: Vectors, queries: Vectors, count: int) -> float:
    """The most by which a backend puts a row further away than it is, as a share of |q|² + |x|²; its bound allows
    `rounding.relative`. A row that it does not return is as far as the furthest that it returns."""
    with np.errstate(over="ignore"):
        approximate, rows = backend.candidates(queries, count)
    usable = (rows >= 0) & np.isfinite(approximate)
    complete = usable.all(axis=1)
    furthest = np.where(usable, approximate, -np.inf).max(axis=1).astype(np.float64)
    double = queries.astype(np.float64)
    mine = np.einsum("ij,ij->i", double, double)
    worst = -np.inf
    step = max(1, _AT_ONCE // library.shape[1])
    for start in range(0, len(library), step):
        block = library[start : start + step].astype(np.float64)
        sums = mine[:, None] + np.einsum("ij,ij->i", block, block)[None, :]
        said = np.where(complete & (count < len(library)), furthest, -np.inf)[:, None].repeat(len(block), axis=1)
        inside = usable & (rows >= start) & (rows < start + len(block))
        query, column = np.nonzero(inside)
        said[query, rows[query, column] - start] = approximate[query, column]
        over = said - backend.rounding.absolute - _squares(double, block)
        known = (2 * sums < _LARGEST) & (sums > 0) & np.isfinite(said)
        worst = max(worst, float(np.max(over[known] / sums[known], initial=-np.inf)))
    return worst


def _check(backend: Backend, library: Vectors) -> None:
    queries = library[np.unique(np.linspace(0, len(library) - 1, _ASKED).astype(np.int64))]
    for count in sorted({min(count, len(library)) for count in _COUNTS}):
        found = excess(backend, library, queries, count)
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
