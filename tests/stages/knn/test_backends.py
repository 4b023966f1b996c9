"""Every backend keeps to the protocol: its bound, its shapes, its rows."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stages.knn.backend import Backend, Vectors, expanded, gamma
from stages.knn.faiss_backend import FaissBackend, _name_processor
from stages.knn.numpy_backend import NumpyBackend
from stages.knn.sklearn_backend import SklearnBackend
from tests.stages.knn.oracle import check_bound

MakeBackend = Callable[[Vectors], Backend]


@pytest.mark.parametrize("queries", [3, 40])  # FAISS uses another formula for few
@pytest.mark.parametrize("backend", [NumpyBackend, FaissBackend, SklearnBackend])
def test_no_approximate_distance_exceeds_the_bound(family: Vectors, backend: MakeBackend, queries: int) -> None:
    check_bound(backend(family), family, queries, min(200, len(family)))


def test_the_bound_of_the_expansion() -> None:
    assert gamma(10, 2.0**-24) == pytest.approx(10 * 2.0**-24, rel=1e-6)
    assert gamma(2.0**24, 2.0**-24) == float("inf")
    assert expanded(2048).relative == pytest.approx(2056 * 2.0**-23, rel=1e-3)
    assert expanded(2048, growth=4).relative > 4 * expanded(2048).relative


def test_a_memory_map_is_searched_in_place(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.eye(30, dtype=np.float32))
    library = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    backends: tuple[MakeBackend, ...] = (NumpyBackend, FaissBackend)
    for backend in backends:
        _distances, rows = backend(library).candidates(np.eye(30, dtype=np.float32), 1)
        assert rows[:, 0].tolist() == list(range(30))


@pytest.mark.parametrize("columns", [8192, 100])
@pytest.mark.parametrize("count", [1, 5, 40, 400])
def test_the_product_proposes_the_smallest_in_the_requested_number(
    columns: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stages.knn.numpy_backend._COLUMNS", columns)
    random = np.random.default_rng(count)
    library = random.normal(size=(777, 24)).astype(np.float32)
    library[500:600] = library[:100]  # equal distances
    queries = library[490:530]
    distances, rows = NumpyBackend(library).candidates(queries, count)
    assert distances.shape == rows.shape == (40, count)
    assert all(len(set(row)) == count for row in rows.tolist())
    every = ((queries[:, None].astype(np.float64) - library[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances, np.take_along_axis(every, rows, axis=1), atol=1e-4)
    np.testing.assert_allclose(np.sort(distances), np.sort(every)[:, :count], atol=1e-4)


def test_rows_whose_distance_overflows_are_not_proposed() -> None:
    library = np.ones((600, 4), np.float32)
    library[::2] *= np.float32(1e30)
    distances, rows = NumpyBackend(library).candidates(np.ones((2, 4), np.float32), 310)
    assert set(rows[0]) == {-1, *range(1, 600, 2)}
    assert np.array_equal(rows == -1, ~np.isfinite(distances))


@pytest.mark.parametrize(
    ("listed", "kernels"),
    [
        ("flags\t\t: fpu avx avx2 fma avx512f avx512dq avx512cd avx512bw avx512vl", "SkylakeX"),
        ("flags\t\t: fpu avx avx2 fma avx512f", "Haswell"),
        ("flags\t\t: fpu sse3\nbugs: many\n\nflags: avx2 fma", None),
        ("Features: asimd", None),
        (None, None),
    ],
)
def test_blas_gets_the_kernels_of_the_processor(
    listed: str | None, kernels: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    if listed is not None:
        (tmp_path / "cpuinfo").write_text(f"processor: 0\n{listed}\n")
    _name_processor(tmp_path / "cpuinfo")
    assert os.environ.get("OPENBLAS_CORETYPE") == kernels
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    _name_processor(tmp_path / "cpuinfo")
    assert os.environ["OPENBLAS_CORETYPE"] == "Zen"


PRINT_ANSWER = """
import hashlib
import numpy as np
from stages.knn.exact_searcher import ExactSearcher
from stages.knn.vector_set import VectorSet
from stages.knn.numpy_backend import NumpyBackend
random = np.random.default_rng(0)
library = VectorSet((1 + 1e-4 * random.normal(size=(600, 300))).astype(np.float32))
found = ExactSearcher(library, NumpyBackend(library.prepared)).search(library, 5)
print(hashlib.sha256(found.rows.tobytes() + found.distances.tobytes()).hexdigest())
"""


def test_answers_do_not_depend_on_threads_or_kernels() -> None:
    answers = set()
    for settings in ({"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2"}, {"OPENBLAS_CORETYPE": "Prescott"}):
        environment = os.environ | settings
        run = subprocess.run(
            [sys.executable, "-c", PRINT_ANSWER], env=environment, capture_output=True, text=True, check=True
        )
        answers.add(run.stdout)
    assert len(answers) == 1
