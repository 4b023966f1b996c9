"""True distances on a card, by cuML's backend on stand-ins for CuPy and cuML: bit for bit those of the processor, and
used only where that was seen."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from stages.knn import bound_deviation, searcher_factory
from stages.knn.backend import Distances, Rows, Vectors
from stages.knn.bound_deviation import BoundExamination
from stages.knn.candidate_prover import CandidateProver
from stages.knn.lazy_gpu import ProductAccount
from stages.knn.search_settings import SearchSettings
from stages.knn.searcher_factory import SearchMachine, open_searcher
from stages.knn.vector_set import VectorSet
from studies.gpu import prove
from tests.example_counts import examples
from tests.stages.knn.oracle import brute

pytestmark = pytest.mark.usefixtures("gpu")

Change = Callable[[Distances], Distances]


@contextmanager
def stand_ins() -> Iterator[ModuleType]:
    """The module of cuML's backend, which finds NumPy under the names of CuPy and cuML."""
    names = ("cupy", "cuml", "cuml.neighbors", "stages.knn.cuml_backend")
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(prove.REHEARSAL))
    try:
        yield importlib.import_module("stages.knn.cuml_backend")
    finally:
        sys.path.remove(str(prove.REHEARSAL))
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(before)


with stand_ins() as CUML:
    pass


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in is no quicker than the processor."""
    monkeypatch.setattr(bound_deviation, "_WORTH", 0)


def machine(backend: type) -> SearchMachine:
    def load(name: str) -> Any:
        return type("Module", (), {"CumlBackend": backend}) if name == "cuml_backend" else searcher_factory.load(name)

    return SearchMachine(load, lambda package: True, ProductAccount(0, speed=0))


def changed(change: Change, most: int = 0) -> type:
    """The backend of a card that computes other distances for more than so many queries."""

    class Changed(CUML.CumlBackend):  # type: ignore[misc, name-defined]
        def measured(self, queries: Vectors, count: int) -> tuple[Distances, Rows, Distances | None]:
            distances, rows, true = super().measured(queries, count)
            return distances, rows, change(true) if len(queries) > most else true

    return Changed


def inexact(true: Distances) -> Distances:
    """One distance is another number, by one bit."""
    true[0, -1] = np.nextafter(true[0, -1], np.float32(np.inf))
    return true


def exhausted(true: Distances) -> Distances:
    raise MemoryError("std::bad_alloc")


class CompileError(Exception):
    """As CuPy's, which is of no kind of its own."""


def uncompiled(true: Distances) -> Distances:
    raise CompileError("nvrtc: error: cannot open source file")


@given(st.integers(1, 3000), st.integers(0, 2**32))
@settings(max_examples=examples(100), deadline=None)
def test_sums_are_numpys_to_the_bit_for_every_dimension(width: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    numbers = random.uniform(0, 1, (3, width)) * 10.0 ** random.integers(-300, 300)
    assert np.array_equal(CUML.pairwise_sums(numbers), np.add.reduce(numbers, axis=1))


@pytest.mark.parametrize("bytes_at_once", [64 << 20, 5000])
def test_distances_are_those_of_the_definition(
    family: Vectors, bytes_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CUML, "_DIFFERENCES", bytes_at_once)
    with np.errstate(over="ignore", invalid="ignore"):
        _, rows, true = CUML.CumlBackend(family).measured(family[:40], 32)
    library = VectorSet(family)
    right = library.distances(np.repeat(np.arange(40), 32), library, rows.reshape(-1))
    assert true.dtype == np.float32
    assert np.array_equal(true.reshape(-1), right)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_search_with_the_cards_distances_is_exact(family: Vectors, metric: str) -> None:
    library, said = VectorSet(family, metric), list[str]()
    with np.errstate(over="ignore", invalid="ignore"):
        searcher = open_searcher(library, SearchSettings(), {}, said.append, machine(CUML.CumlBackend))
        found = searcher.search(library, 5, np.arange(len(family)))
    distances, rows = brute(family, family, 5, metric, np.arange(len(family)))
    assert np.array_equal(found.rows, rows)
    assert np.array_equal(found.distances, distances)
    assert said == []


VECTORS = np.random.default_rng(1).normal(size=(2100, 48)).astype(np.float32)


def search(backend: type, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, list[str]]:
    """Searches with exact answers; returns whether the processor had to compare candidates, and what was said."""
    library, said, compared = VectorSet(VECTORS), list[str](), list[int]()
    before = CandidateProver._compared

    def counted(*arguments: Any) -> Any:
        compared.append(1)
        return before(*arguments)

    monkeypatch.setattr(CandidateProver, "_compared", counted)
    found = open_searcher(library, SearchSettings(), {}, said.append, machine(backend)).search(library, 4)
    distances, rows = brute(VECTORS[::7], VECTORS, 4)
    assert np.array_equal(found.rows[::7], rows)
    assert np.array_equal(found.distances[::7], distances)
    return bool(compared), said


def test_the_processor_compares_nothing_where_the_card_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    assert search(CUML.CumlBackend, monkeypatch) == (False, [])


@pytest.mark.parametrize("change", [inexact, exhausted, uncompiled], ids=lambda each: each.__name__)
def test_a_card_that_measures_otherwise_or_not_at_all_only_proposes(
    change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert search(changed(change), monkeypatch) == (True, [])


def test_a_card_that_measures_slowly_only_proposes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound_deviation, "_WORTH", 1e9)
    assert search(CUML.CumlBackend, monkeypatch) == (True, [])


def test_a_card_that_measures_otherwise_after_the_examination_is_caught_by_the_audit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, (line,) = search(changed(inexact, most=100), monkeypatch)
    assert "computed a distance in float64 that is not the true one" in line
    assert line.endswith("searching on the CPU instead")


def test_the_processor_measures_while_the_cards_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> Distances:
        if len(arguments[0]) > 100:  # after the examination
            raise MemoryError
        return before(*arguments)  # type: ignore[no-any-return]

    before = CUML.true_distances
    monkeypatch.setattr(CUML, "true_distances", full)
    assert search(CUML.CumlBackend, monkeypatch) == (True, [])


def test_a_library_in_parts_is_measured_by_the_processor() -> None:
    backend = CUML.CumlBackend(VECTORS, share=1e-4)
    assert backend.on_card is None
    assert backend.measured(VECTORS[:5], 8)[2] is None


def test_hard_rows_are_measured_once_for_a_dimension() -> None:
    examination, made = BoundExamination(), list[int]()

    def make(rows: Vectors) -> Any:
        made.append(len(rows))
        return CUML.CumlBackend(rows)

    for _ in range(2):
        assert examination.examine(make, CUML.CumlBackend(VECTORS), VECTORS)
    assert made == [2048]
