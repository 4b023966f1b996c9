"""The GPU path without a GPU: kernels of every precision give exact answers or are refused, and failures lead to the
processor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stages.datum import visible_gpus
from stages.datum.contract import StageError
from stages.knn import bound_deviation, searcher_factory
from stages.knn.backend import Distances, Vectors
from stages.knn.bound_deviation import BoundDeviationError, BoundExamination, excess, hard_rows
from stages.knn.candidate_prover import CandidateProver
from stages.knn.exact_searcher import ExactSearcher
from stages.knn.lazy_gpu import ProductAccount
from stages.knn.search_settings import SearchSettings
from stages.knn.searcher_factory import open_searcher
from stages.knn.top_k import Searcher
from stages.knn.vector_set import VectorSet
from tests.stages.knn import imitations
from tests.stages.knn.imitations import Imitation, Product
from tests.stages.knn.oracle import brute

PRECISE = [imitations.plain, imitations.in_order, imitations.three_tf32, imitations.flushed]
COARSE = [imitations.one_tf32, imitations.truncated_tf32, imitations.bfloat16]


pytestmark = pytest.mark.usefixtures("gpu")


def opened(
    library: VectorSet,
    product: Product,
    said: list[str],
    backend: str = "auto",
    fail: Callable[[int], None] = lambda queries: None,
) -> Searcher:
    machine = imitations.machine(product, ProductAccount(0, speed=0), fail)
    return open_searcher(library, SearchSettings(backend=backend), {}, said.append, machine)


def answer(vectors: Vectors, product: Product, fail: Callable[[int], None] = lambda queries: None) -> list[str]:
    """Searches for all the vectors, twice, with the right answers; returns what was said."""
    library, said = VectorSet(vectors), list[str]()
    searcher = opened(library, product, said, fail=fail)
    _, rows = brute(vectors, vectors, 5)
    for _ in range(2):
        assert np.array_equal(searcher.search(library, 5).rows, rows)
    return said


def near_duplicates(dimension: int, count: int = 400) -> Vectors:
    """Rows that are told apart by the last bits of their numbers, all a little below a rounding point of TF32."""
    random = np.random.default_rng(5)
    base = 1 + 2.0**-11 * random.uniform(0.5, 1, dimension)
    rows: Vectors = (base * (1 + 2.0**-20 * random.normal(size=(count, dimension)))).astype(np.float32)
    return rows


@pytest.mark.parametrize("product", [*PRECISE, *COARSE], ids=lambda each: each.__name__)
@pytest.mark.parametrize("dimension", [24, 512, pytest.param(2048, marks=pytest.mark.only_in_all)])
def test_a_kernel_is_exact_or_refused(product: Product, dimension: int) -> None:
    vectors = near_duplicates(dimension, 400 if dimension == 24 else 150)
    library, said = VectorSet(vectors), list[str]()
    found = opened(library, product, said).search(library, 5, np.arange(len(vectors)))
    distances, rows = brute(vectors, vectors, 5, exclude=np.arange(len(vectors)))
    assert np.array_equal(found.rows, rows)
    assert np.array_equal(found.distances, distances)
    if product in PRECISE:
        assert said == []
    elif dimension == 24:  # in more dimensions the bound allows for more
        (line,) = said
        assert "GPU: it is not used: cuml computes squared distances that are too large by up to" in line
        assert line.endswith("Searching on the CPU instead")


@pytest.mark.parametrize("product", PRECISE, ids=lambda each: each.__name__)
def test_precise_kernels_are_exact_on_hard_families(family: Vectors, product: Product) -> None:
    assert answer(family, product) == []


@pytest.mark.parametrize(
    "product", [COARSE[0], *(pytest.param(each, marks=pytest.mark.only_in_all) for each in COARSE[1:])]
)
def test_coarse_kernels_are_exact_or_refused_on_hard_families(family: Vectors, product: Product) -> None:
    answer(family, product)


def test_without_the_examination_such_a_kernel_gives_wrong_neighbours_that_look_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This is what the examination and the audit are for."""
    monkeypatch.setattr(CandidateProver, "_audit", lambda *_: None)
    vectors = near_duplicates(24)
    library = VectorSet(vectors)
    found = ExactSearcher(library, Imitation(vectors, imitations.one_tf32)).search(library, 5)
    assert (found.rows != brute(vectors, vectors, 5)[1]).any(axis=1).sum() > 50


def test_an_adversary_that_passes_the_examination_is_caught_by_the_audit() -> None:
    (line,) = answer(near_duplicates(24), imitations.adversary)
    assert "by more than float32 arithmetic explains" in line
    assert line.endswith("searching on the CPU instead")


def test_what_was_answered_before_the_audit_failed_is_not_trusted() -> None:
    library = VectorSet(near_duplicates(24))
    searcher = opened(library, imitations.adversary, [])
    assert len(searcher.search(library.part(slice(0, 10)), 5).rows) == 10
    with pytest.raises(BoundDeviationError, match="Use BACKEND=numpy or faiss"):
        searcher.search(library, 5)


def test_a_coarse_kernel_that_was_asked_for_is_an_error() -> None:
    library = VectorSet(near_duplicates(24))
    with pytest.raises(StageError, match=r"too large by up to \d.*Use BACKEND=numpy or faiss"):
        opened(library, imitations.one_tf32, [], "cuml")


def test_hard_rows_measure_the_error_of_each_format() -> None:
    def worst(product: Product) -> float:
        hard = hard_rows(24, 200)
        return excess(Imitation(hard, product), hard, hard[:40], [40])

    assert worst(imitations.plain) < 1e-6
    assert worst(imitations.three_tf32) < 1e-6
    assert 0.9 * 2.0**-10 < worst(imitations.one_tf32) < 1.1 * 2.0**-10
    assert 0.9 * 2.0**-9 < worst(imitations.truncated_tf32) < 1.1 * 2.0**-9
    assert worst(imitations.bfloat16) > 0.9 * 2.0**-7


def test_a_backend_that_leaves_out_a_near_row_is_refused() -> None:
    class Leaving(Imitation):
        def candidates(self, queries: Vectors, count: int) -> Any:
            distances, rows = super().candidates(queries, min(count + 1, len(self._library)))
            return distances[:, 1:], rows[:, 1:]

    vectors = np.random.default_rng(0).normal(size=(300, 24)).astype(np.float32)
    with pytest.raises(BoundDeviationError):
        BoundExamination().examine(
            lambda hard: Imitation(hard, imitations.plain), Leaving(vectors, imitations.plain), vectors
        )


def failing(failure: BaseException, asked: list[int], most: int = 0, after: int = 0) -> Callable[[int], None]:
    """Fails for more queries than `most`, from a call on. asked: gets the number of queries of each call."""

    def fail(queries: int) -> None:
        asked.append(queries)
        if queries > most and len(asked) > after:
            raise failure

    return fail


EXAMINATION = 6
"""Its calls."""

VECTORS = np.random.default_rng(1).normal(size=(1200, 32)).astype(np.float32)


@pytest.mark.parametrize(
    "failure",
    [
        MemoryError("std::bad_alloc: out_of_memory: CUDA error at: rmm/mr/device/cuda_memory_resource.hpp"),
        RuntimeError("CUDA error: out of memory"),
    ],
)
def test_a_shortage_of_memory_halves_the_queries_at_once(failure: BaseException) -> None:
    asked: list[int] = []
    (line,) = answer(VECTORS, imitations.plain, failing(failure, asked, most=400))
    assert "GPU: its memory is too small for 1200 queries at a time" in line
    assert max(asked[asked.index(1200) + 2 :]) <= 300


def test_memory_that_never_suffices_leads_to_the_processor() -> None:
    said = answer(VECTORS, imitations.plain, failing(MemoryError("std::bad_alloc"), [], after=EXAMINATION))
    assert [line.partition(" (")[0] for line in said] == [
        "GPU: its memory is too small for 1200 queries at a time",
        "GPU: it cannot be used for this search",
    ]


def test_a_card_without_the_kernels_is_not_used() -> None:
    """As those below compute capability 7.0, on which the first kernel fails and not the constructor."""
    asked: list[int] = []
    missing = RuntimeError("CUDA error: no kernel image is available for execution on the device")
    said = answer(VECTORS, imitations.plain, failing(missing, asked))
    assert len(asked) == 1
    assert said == [
        "GPU: cuML does not work with it (RuntimeError: CUDA error: no kernel image is available for "
        "execution on the device): searching on the CPU instead"
    ]


class CompileException(Exception):
    """As CuPy's, which is of no kind of its own."""


@pytest.mark.parametrize("failure", [AttributeError("numpy has no attribute row_stack"), CompileException("nvrtc")])
def test_failures_of_every_kind_lead_to_the_processor(failure: Exception) -> None:
    (line,) = answer(VECTORS, imitations.plain, failing(failure, []))
    assert f"GPU: cuML does not work with it ({type(failure).__name__}: {failure})" in line
    (line,) = answer(VECTORS, imitations.plain, failing(failure, [], after=EXAMINATION))
    assert f"GPU: it cannot be used for this search ({type(failure).__name__}: {failure})" in line
    with pytest.raises(StageError, match="BACKEND=cuml does not work here"):
        opened(VectorSet(VECTORS), imitations.plain, [], "cuml", failing(failure, []))


def test_hard_rows_are_examined_once_for_a_process_and_a_dimension() -> None:
    asked: list[int] = []
    machine = imitations.machine(imitations.plain, ProductAccount(0, speed=0), asked.append)
    large = np.random.default_rng(3).normal(size=(2048, 16)).astype(np.float32)
    for vectors, calls in ((large, EXAMINATION), (large, EXAMINATION // 2), (large[:, :8].copy(), EXAMINATION)):
        asked.clear()
        searcher_factory.open_backend(vectors, SearchSettings(), {}, print, machine)
        assert len(asked) == calls


def test_of_a_large_library_some_rows_and_all_that_are_returned_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound_deviation, "_TRIED", 32)
    vectors = np.random.default_rng(4).normal(size=(600, 24)).astype(np.float32)

    def raised(queries: Vectors, library: Vectors) -> Distances:
        """Wrong for one row that is not among the 32."""
        products = queries @ library.T
        products[:, 101] -= 50  # so that it is put far away
        return products

    device = Imitation(vectors, raised)
    assert excess(device, vectors, vectors[100:101], [8]) < 1e-6  # not seen
    assert excess(device, vectors, vectors[100:101], [600]) > 0.1  # seen among those returned


def test_a_gpu_that_fails_later_is_replaced_once() -> None:
    illegal = RuntimeError("CUDA error: an illegal memory access was encountered")
    (line,) = answer(VECTORS, imitations.plain, failing(illegal, [], after=EXAMINATION))
    assert str(visible_gpus.notice_text(line)).startswith("it cannot be used")
    assert "GPU: it cannot be used for this search (RuntimeError: CUDA error: an illegal memory access" in line


def test_a_gpu_that_was_asked_for_and_fails_is_an_error() -> None:
    library = VectorSet(VECTORS)
    fail = failing(RuntimeError("CUDA error: unspecified launch failure"), [], after=EXAMINATION)
    searcher = opened(library, imitations.plain, [], "cuml", fail)
    with pytest.raises(StageError, match=r"BACKEND=cuml does not work here .*unspecified launch failure.*BACKEND=auto"):
        searcher.search(library, 5)


MANY = np.random.default_rng(2).normal(size=(4500, 32)).astype(np.float32)


class Device:
    """A GPU that answers one call at a time, fails at a given one, and remembers who called it."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.calls = 0
        self.asked: list[int] = []
        self.threads: set[int] = set()
        self._busy = threading.Lock()
        self._fails_at = fails_at

    def __call__(self, queries: Vectors, library: Vectors) -> Distances:
        assert self._busy.acquire(blocking=False), "two calls at once"
        try:
            if len(library) == len(MANY) and len(queries) > 64:  # after the examination
                self.calls += 1
                self.asked.append(len(queries))
                self.threads.add(threading.get_ident())
                if self.calls == self._fails_at:
                    raise RuntimeError("CUDA error: an illegal memory access was encountered")
            return queries @ library.T
        finally:
            self._busy.release()


def test_a_gpu_proposes_candidates_for_some_queries_while_others_are_compared() -> None:
    device, library, said = Device(), VectorSet(MANY), list[str]()
    found = opened(library, device, said).search(library, 3)
    assert np.array_equal(found.rows[::9], brute(MANY[::9], MANY, 3)[1])
    assert device.asked[:2] == [2250, 2250]
    assert len(device.threads) == 2
    assert threading.get_ident() not in device.threads
    assert said == []


@pytest.mark.parametrize("call", [1, 2])
def test_a_gpu_that_fails_in_one_of_two_threads_is_replaced_once(call: int) -> None:
    device, library, said = Device(call), VectorSet(MANY), list[str]()
    found = opened(library, device, said).search(library, 3)
    assert np.array_equal(found.rows[::9], brute(MANY[::9], MANY, 3)[1])
    assert device.calls == call
    assert len(said) == 1
    assert "GPU: it cannot be used for this search (RuntimeError: CUDA error: an illegal memory access" in said[0]
