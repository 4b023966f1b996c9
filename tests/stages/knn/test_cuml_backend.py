"""The cuML backend against the same oracle and the same hard families as the others; needs an NVIDIA GPU and RAPIDS."""

import os

import numpy as np
import pytest

from stages.datum.visible_gpus import gpu_visible
from stages.knn.backend import Vectors
from stages.knn.exact_searcher import ExactSearcher
from stages.knn.search_settings import SearchSettings
from stages.knn.searcher_factory import open_searcher
from stages.knn.vector_set import VectorSet
from tests.stages.knn.oracle import brute, check_bound

pytestmark = pytest.mark.gpu

if not gpu_visible(os.environ):
    pytest.skip("no NVIDIA GPU", allow_module_level=True)
pytest.importorskip("cuml")


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_equals_float64_brute_force_on_hard_families(family: Vectors, metric: str) -> None:
    library = VectorSet(family, metric)
    itself = np.arange(len(family))
    found = open_searcher(library, SearchSettings(backend="cuml"), os.environ).search(library, 5, itself)
    distances, rows = brute(family, family, 5, metric, itself)
    assert np.array_equal(found.rows, rows)
    assert np.array_equal(found.distances, distances)


@pytest.mark.parametrize("count", [8, 200])  # cuVS uses a fused kernel for up to 64 neighbours
def test_no_approximate_distance_exceeds_the_bound(family: Vectors, count: int) -> None:
    from stages.knn.cuml_backend import CumlBackend  # noqa: PLC0415  only where there is a GPU

    check_bound(CumlBackend(family), family, 40, count)


def test_a_library_in_parts_gives_the_same() -> None:
    from stages.knn.cuml_backend import CumlBackend  # noqa: PLC0415  only where there is a GPU

    library = VectorSet(np.random.default_rng(0).normal(size=(2000, 64)).astype(np.float32))
    backend = CumlBackend(library.prepared, share=1e-7)
    assert backend.on_card is None
    found = ExactSearcher(library, backend).search(library.part(slice(0, 50)), 4)
    assert np.array_equal(found.rows, brute(library.vectors[:50], library.vectors, 4)[1])
