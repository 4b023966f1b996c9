"""The pictures far from all others, compared with a sort of all distances."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from pipelines.analysis.measurement.picture_quality import nearest_distances
from stages.knn.search_settings import SearchSettings
from stages.knn.searcher_factory import open_searcher
from stages.knn.top_k import Searcher
from stages.knn.vector_set import VectorSet
from tests.example_counts import examples


def opened(points: VectorSet) -> Searcher:
    return open_searcher(points, SearchSettings(1), {"CUDA_VISIBLE_DEVICES": ""})


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_distances_beyond_the_limit_are_the_true_ones(sizes: list[int], seed: int) -> None:
    vectors = np.random.default_rng(seed).standard_exponential((sum(sizes), 2)).astype(np.float32) ** 2
    parts = [VectorSet(each) for each in np.split(vectors, np.cumsum(sizes)[:-1])]
    usual, found = nearest_distances(parts, 1.5, opened)
    true = np.linalg.norm(vectors[:, None].astype(np.float64) - vectors, axis=2)
    np.fill_diagonal(true, np.inf)
    least = true.min(axis=1)
    if len(vectors) == 1:
        assert usual == 0 and np.isnan(found).all()
        return
    assert usual == np.median(least[least > 0].astype(np.float32))
    assert ((found > 1.5 * usual) == (least > 1.5 * usual)).all()
    assert np.allclose(found[found > 1.5 * usual], least[found > 1.5 * usual])
