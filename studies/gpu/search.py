"""Search on the GPU: cuML alone, lookalike's exact search on it beside the truth in float64, and a card that is nearly
full. Needs cuML and CuPy."""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cupy
import numpy as np
from cuml.neighbors import NearestNeighbors

from stages.knn import code_index, searcher_factory
from stages.knn.backend import Distances
from stages.knn.bound_deviation import BoundExamination, excess, hard_rows, speed
from stages.knn.cuml_backend import CumlBackend
from stages.knn.exact_searcher import ExactSearcher
from stages.knn.fallback_backend import FallbackBackend
from stages.knn.lazy_gpu import LazyGpuSearcher, ProductAccount, import_price
from stages.knn.search_settings import SearchSettings
from stages.knn.searcher_factory import SearchMachine, open_searcher
from stages.knn.vector_set import VectorSet
from studies.gpu import goals, notebook, vectors
from studies.gpu.notebook import REHEARSAL, Notebook, best, timed
from studies.gpu.vectors import ASKED, DIMENSION, LIBRARY, MANY, QUERIES, SHORT, K, Rows, Vectors, agreement, truth

_CHECKED = slice(0, 500)
"""The queries of cuML alone that are compared with the truth."""

_COUNTS = (8, 64, 65, 300)
"""Candidates to ask for: cuVS has other kernels for more than 64."""

_AT_ONCE = 2500
"""Queries of a bare product."""

_LEFT = (1500, 400, 100)
"""MiB of the card that a shortage leaves free."""


class TimedCuml(CumlBackend):
    """cuML's backend, with (queries, candidates, seconds) of each call, of which `measuring` are for true distances."""

    def __init__(self, library: Vectors) -> None:
        super().__init__(library)
        self.calls: list[tuple[int, int, float]] = []
        self.measuring = 0.0

    def measured(self, queries: Vectors, count: int) -> tuple[Distances, Rows, Distances | None]:
        """See MeasuringBackend.measured."""
        seconds, (distances, rows, true) = timed(lambda: super(TimedCuml, self).measured(queries, count))
        self.calls.append((len(queries), count, round(seconds, 4)))
        return distances, rows, true

    def _true(self, *given: Any) -> Distances | None:
        start = time.perf_counter()
        true = super()._true(*given)
        self.measuring += time.perf_counter() - start
        return true


def cuml_alone(notes: Notebook) -> None:
    """cuML as the article calls it, and as lookalike does."""
    library, queries = vectors.library(), vectors.queries()

    def whole(metric: str, count: int) -> Any:
        made = NearestNeighbors(n_neighbors=count, algorithm="brute", metric=metric, output_type="numpy")
        return made.fit(library).kneighbors(queries)

    with notes.memory("fit and kneighbors"):
        notes.note(goals.CUML_ALONE, best(lambda: whole("euclidean", K), 5))
    found = whole("euclidean", K)
    notes.note("types", [f"{type(each).__name__} {each.dtype} {each.shape}" for each in found])
    notes.note(
        "fit and kneighbors, 32 candidates, as stages.knn.cuml_backend", best(lambda: whole("sqeuclidean", 32), 5)
    )
    notes.note("fit and kneighbors, 228 candidates", best(lambda: whole("sqeuclidean", 228), 2))
    fitted = NearestNeighbors(algorithm="brute", metric="sqeuclidean", output_type="cupy").fit(cupy.asarray(library))
    asked = cupy.asarray(queries)
    product = partial(_product, asked, cupy.asarray(library))
    notes.attempt("bare product in float32, by CuPy", lambda: best(product, 5))

    def on_device(queries: Any, count: int) -> Any:
        return fitted.kneighbors(queries, count)[1].get()

    for count in (3, 32, 64, 65, 228):
        notes.note(f"kneighbors on the device, {count}", best(partial(on_device, asked, count), 3))
    notes.note("kneighbors on the device, one query, 32", best(partial(on_device, asked[:1], 32), 5))
    true = truth(queries[_CHECKED], library)
    notes.note("cuML's own neighbours against float64", agreement(found[1][_CHECKED], true))


def self_test(notes: Notebook) -> None:
    """The cost of opening, and how far cuML's distances are from what its bound promises."""
    library = vectors.library()
    seconds, backend = timed(lambda: CumlBackend(library))
    notes.note("CumlBackend(library)", round(seconds, 3))
    notes.note("promised, of |q|² + |x|²", backend.rounding.relative)
    for turn in ("examine, with the kernels' compilation", "examine"):
        seconds, measures = timed(lambda: BoundExamination().examine(CumlBackend, backend, library))
        notes.note(turn, {"s": round(seconds, 3), "the card's true distances are used": measures})
    asked = library[np.linspace(0, LIBRARY - 1, 64).astype(np.int64)]
    seconds_by_count = {count: timed(partial(backend.candidates, asked, count))[0] for count in (8, 40, 300)}
    notes.note("of that on the GPU", {count: round(seconds, 4) for count, seconds in seconds_by_count.items()})
    few = library[:4000]
    families = {
        "hard rows": hard_rows(DIMENSION, 2048),
        "features": few,
        "normal": np.random.default_rng(2).standard_normal(few.shape, np.float32),
        "far from 0": few + np.float32(30),
        "near-duplicates": few[np.arange(len(few)) // 20] * (1 + np.float32(1e-4) * few),
    }
    for name, rows in families.items():
        proposer = CumlBackend(rows)
        most = {count: f"{excess(proposer, rows, rows[:200], [count]):.2e}" for count in _COUNTS}
        notes.note(f"most above the truth, {name}", most)
        itself = proposer.candidates(rows[:200], 8)
        own = itself[0][itself[1] == np.arange(200)[:, None]]
        notes.note(f"distances from itself that are not 0, {name}", f"{np.count_nonzero(own)} of {len(own)}")
        times = float(f"{speed(proposer, rows):.2g}")
        notes.note(f"true distances: how many times as fast as the processor, {name}", times)


def certified(notes: Notebook) -> None:
    """lookalike's exact search: every neighbour against float64, and where the time goes."""
    library, queries = vectors.library(), vectors.queries()
    # Near-duplicates, whose order float32 cannot tell.
    library[1000:2000] = queries[:50].repeat(20, axis=0) * (1 + np.float32(1e-6) * library[1000:2000])
    seconds, true = timed(lambda: truth(queries, library))
    notes.note("truth in float64 on the processor, s", round(seconds, 1))
    held, asked = VectorSet(library), VectorSet(queries)
    with notes.memory("certified on the GPU"):
        seconds, searcher = timed(lambda: open_searcher(held, SearchSettings(backend="cuml"), os.environ, notes.log))
        notes.note("BACKEND=cuml: opened, s", round(seconds, 3))
        more, found = timed(lambda: searcher.search(asked, K))
        notes.note("BACKEND=cuml: opened and searched, s", round(seconds + more, 3))
    notes.note("BACKEND=cuml against float64", agreement(found.rows, true))
    notes.note("BACKEND=cuml: tally", asdict(searcher.tally))
    notes.note(goals.CERTIFIED, best(lambda: searcher.search(asked, K), 3))
    notes.note("BACKEND=cuml: one query", best(lambda: searcher.search(asked.part(slice(0, 1)), K), 5))
    _watch(notes, "BACKEND=cuml: of one search", held, asked)
    for name in ("auto", "numpy"):
        machine = SearchMachine(searcher_factory.load, account=ProductAccount())
        opened = partial(open_searcher, held, SearchSettings(backend=name), os.environ, notes.log, machine)
        seconds, searcher = timed(opened)
        more, found = timed(partial(searcher.search, asked, K))
        both = {"s": round(seconds + more, 3), "on the GPU": machine.account.open}
        notes.note(f"BACKEND={name}: opened and searched", both)
        notes.note(f"BACKEND={name} against float64", agreement(found.rows, true))
        notes.note(f"BACKEND={name}: search", best(partial(searcher.search, asked, K), 1))
        notes.note(f"BACKEND={name}: on the GPU at last", machine.account.open)
    products = float(QUERIES) * LIBRARY * DIMENSION
    notes.note("price of the GPU in products, and the products of this search", [import_price(), products])


def million(notes: Notebook) -> None:
    """A million pictures of efficientnet-lite0's dimension."""
    library, queries = vectors.features(MANY, SHORT, 3), vectors.features(ASKED, SHORT, 4)
    held, asked = VectorSet(library), VectorSet(queries)
    with notes.memory("million"):
        seconds, searcher = timed(lambda: open_searcher(held, SearchSettings(backend="cuml"), os.environ, notes.log))
        notes.note("opened, s", round(seconds, 2))
        seconds, found = timed(lambda: searcher.search(asked, K))
        notes.note("search, s", round(seconds, 3))
    notes.note("tally", asdict(searcher.tally))
    _watch(notes, "of another search", held, asked)
    some = slice(0, 100)
    notes.note("against float64", agreement(found.rows[some], truth(queries[some], library)))
    numpy = open_searcher(held, SearchSettings(backend="numpy"), os.environ, notes.log)
    seconds, other = timed(lambda: numpy.search(asked, K))
    notes.note("BACKEND=numpy, s", round(seconds, 3))
    equal = np.array_equal(other.rows, found.rows) and np.array_equal(other.distances, found.distances)
    notes.note("equal to it", equal)


def codes(notes: Notebook) -> None:
    """The codes of a segment, whose recall is measured against exact searches on the card."""
    held = VectorSet(vectors.features(LIBRARY if not REHEARSAL else 5_000, SHORT, 5))
    with tempfile.TemporaryDirectory() as scratch:
        for backend in ("cuml", "numpy"):
            exact = open_searcher(held, SearchSettings(backend=backend), os.environ, notes.log)
            for algorithm in ("ivfflat", "ivfpq"):
                path = Path(scratch) / code_index.FILE
                seconds, facts = timed(partial(code_index.write, held, algorithm, exact, path))
                found = {"s": round(seconds, 2), "recall": facts.recall, "MB": path.stat().st_size / 1e6}
                notes.note(f"{algorithm}, measured by BACKEND={backend}", found)


def shortage(notes: Notebook) -> None:
    """A library in parts, and a card that other work has nearly filled."""
    library = vectors.features(LIBRARY // 3, DIMENSION, 0)
    held, asked = VectorSet(library), VectorSet(vectors.features(QUERIES // 5, DIMENSION, 1))
    plain = ExactSearcher(held, CumlBackend(library)).search(asked, K)
    free, total = cupy.cuda.runtime.memGetInfo()
    notes.note("free and total, MiB", [free >> 20, total >> 20])
    backend = CumlBackend(library, share=library.nbytes / 3.5 / free)
    notes.note("parts", len(backend._parts))
    seconds, found = timed(lambda: ExactSearcher(held, backend).search(asked, K))
    notes.note("in parts", {"s": round(seconds, 3), "equal": np.array_equal(found.rows, plain.rows)})
    if REHEARSAL:
        return

    def searched(name: str) -> dict[str, object]:
        machine = SearchMachine(searcher_factory.load, account=ProductAccount(price=0, speed=0))
        opened = open_searcher(held, SearchSettings(backend=name), os.environ, notes.log, machine)
        answer = opened.search(asked, K)
        searcher = opened._searcher if isinstance(opened, LazyGpuSearcher) else opened
        assert isinstance(searcher, ExactSearcher)
        return {"equal": np.array_equal(answer.rows, plain.rows), "by": searcher._backend.name}

    for left in _LEFT:
        free, _total = cupy.cuda.runtime.memGetInfo()
        taken = free - (left << 20)
        block = cupy.cuda.runtime.malloc(taken) if taken > 0 else 0
        try:
            for name in ("cuml", "auto"):
                notes.attempt(f"{left} MiB free, BACKEND={name}", partial(searched, name))
        finally:
            if block:
                cupy.cuda.runtime.free(block)
    notes.note("afterwards as before", searched("cuml"))


def _watch(notes: Notebook, name: str, held: VectorSet, asked: VectorSet) -> None:
    """Notes the seconds of one search, and those of its calls of cuML."""
    device = TimedCuml(held.prepared)
    start = time.perf_counter()
    ExactSearcher(held, FallbackBackend(device, None, notes.log, measures=True)).search(asked, K)
    taken = {"s": round(time.perf_counter() - start, 3), "on the GPU, s": _sum(device.calls)}
    notes.note(name, {**taken, "of that true distances, s": round(device.measuring, 3), "calls": device.calls})


def _sum(calls: Sequence[tuple[int, int, float]]) -> float:
    return round(sum(seconds for _queries, _count, seconds in calls), 3)


def _product(queries: Any, library: Any) -> None:
    for start in range(0, len(queries), _AT_ONCE):
        float((queries[start : start + _AT_ONCE] @ library.T)[0, 0])  # waits for it


_STEPS = {each.__name__: each for each in (cuml_alone, self_test, certified, million, shortage, codes)}

if __name__ == "__main__":
    with patch.object(searcher_factory, "gpu_visible", lambda _environment: True) if REHEARSAL else nullcontext():
        sys.exit(notebook.main(_STEPS))
