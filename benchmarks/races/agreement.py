"""The agreement between the answers of several searchers, for each pair of them. Knows no searcher."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.kit.report import Line, Result, Row

_TIE = 1e-6  # true distances that differ by less, relatively, are equal in float32
_APART = 1.0
"""The article calls answers equal if all distances differ by less."""

_STEP = 500  # queries compared at once

Doubles = NDArray[np.float64]


def agreement(directory: Path, names: Sequence[str], what: str = "made vectors") -> Result:
    """For the answers that benchmarks.races.searchers wrote to a directory: the share of neighbours of each pair that
    are the same or truly equally far away, and the largest difference of their distances. `what` describes the
    vectors."""
    found = {name: dict(np.load(directory / f"{name}.npz")) for name in names}
    library, queries = (np.load(directory / f"{each}.npy", mmap_mode="r") for each in ("library", "queries"))
    true = {name: _true(queries, library, each["rows"]) for name, each in found.items()}
    rows, lines = [], []
    for one, other in combinations(names, 2):
        same = float(_same(found[one]["rows"], found[other]["rows"], true[one], true[other]).mean())
        apart = _apart(found[one], found[other])
        pair = f"{one} and {other}"
        rows += [Row(f"agreement, {what}", pair, rate=same), Row(f"distances apart, {what}", pair, rate=apart)]
        typical = float(found[one]["distances"].mean())
        said = f"{same:.2%} of neighbours, distances within {apart:.2g} of {typical:.3g} on average"
        met = "yes" if apart < _APART else "no"
        lines.append(Line(f"agreement, {what}, {pair}", said, "", "", f"all distances within {_APART:g}", met))
    return Result(tuple(rows), tuple(lines))


def _apart(one: Mapping[str, NDArray[np.float32]], other: Mapping[str, NDArray[np.float32]]) -> float:
    return float(np.abs(one["distances"].astype(float) - other["distances"]).max(initial=0.0))


def _same(rows: NDArray[np.int64], others: NDArray[np.int64], true: Doubles, of_others: Doubles) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (rows == others) | (np.abs(true - of_others) <= _TIE * np.maximum(true, of_others))
    return same


def _true(queries: NDArray[np.float32], library: NDArray[np.float32], rows: NDArray[np.int64]) -> Doubles:
    """The distances in float64 of each query from the rows found for it."""
    true = np.empty(rows.shape)
    for start in range(0, len(rows), _STEP):
        some = slice(start, start + _STEP)
        apart = queries[some, None].astype(np.float64) - library[rows[some]]
        true[some] = np.sqrt(np.einsum("qkd,qkd->qk", apart, apart))
    return true
