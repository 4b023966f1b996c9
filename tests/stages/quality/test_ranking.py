"""Rankings of labelled pictures in several segments, compared with a sort of all distances."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from stages.knn.search_settings import SearchSettings
from stages.knn.searcher_factory import open_searcher
from stages.knn.top_k import NONE
from stages.knn.vector_set import VectorSet
from stages.quality.ranking import LabelledVectors, depths, rank
from tests.example_counts import examples

CPU = {"CUDA_VISIBLE_DEVICES": ""}


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_a_ranking_is_that_of_all_labelled_pictures_together(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    k, seed = data.draw(st.integers(1, 8)), data.draw(st.integers(0, 2**32 - 1))
    starts = np.cumsum([0, *sizes]).tolist()
    vectors = np.random.default_rng(seed).integers(0, 3, (starts[-1], 2)).astype(np.float32)  # many ties
    segments = {
        str(at): LabelledVectors(VectorSet(vectors[start : start + size]), start)
        for at, (start, size) in enumerate(zip(starts, sizes, strict=False))
    }
    found = rank(segments, k, lambda points: open_searcher(points, SearchSettings(k), CPU))
    rows, distances = (
        np.concatenate([getattr(each, name) for each in found.values()]) for name in ("rows", "distances")
    )
    true = np.linalg.norm(vectors[:, None].astype(np.float64) - vectors, axis=2)
    np.fill_diagonal(true, np.inf)
    order = np.argsort(true, axis=1, kind="stable")[:, : min(k, len(vectors) - 1)]
    assert rows.tolist() == order.tolist()
    assert np.array_equal(distances, np.take_along_axis(true, order, 1).astype(np.float32))
    assert all((depths(each) == order.shape[1]).all() for each in found.values())
    assert NONE not in rows


def test_nothing_to_rank() -> None:
    assert rank({}, 3, lambda _: None) == {}  # type: ignore[arg-type, return-value]
