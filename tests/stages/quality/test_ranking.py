"""Rankings of labelled pictures from the nearest of all segments, compared with a sort of all distances."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings, strategies as st

from stages.files.tables.nearest_table import NEAREST
from stages.quality.ranking import NONE, SegmentNeighbours, rank
from tests.example_counts import examples


def sides_of(distances: npt.NDArray[np.float32], sizes: list[int], left: int, kept: int) -> list[SegmentNeighbours]:
    """The output of neighbours for the segment `left`, of which `distances` (m, n) are those to all n pictures."""
    starts = np.cumsum([0, *sizes]).tolist()
    found = []
    for right, size in enumerate(sizes):
        own = range(starts[left], starts[left + 1])
        width = min(kept, size - (right == left))
        nearest = np.zeros((len(own), width), NEAREST)
        for row, of in enumerate(own):
            there = {at: float(distances[row, starts[right] + at]) for at in range(size) if starts[right] + at != of}
            order = sorted(there, key=there.__getitem__)[:width]  # stable: by row
            nearest["row"][row] = order
            nearest["distance"][row] = distances[row, [starts[right] + at for at in order]]
        found.append(SegmentNeighbours(nearest, starts[right], size - (right == left)))
    return found


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_a_ranking_is_a_beginning_of_the_true_one_and_complete_where_it_can_be(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    left = data.draw(st.integers(0, len(sizes) - 1))
    kept, k = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 8))
    total, start = sum(sizes), sum(sizes[:left])
    seed = data.draw(st.integers(0, 2**32 - 1))
    lot = np.random.default_rng(seed)
    distances = lot.integers(0, 5, (sizes[left], total)).astype(np.float32)  # many ties
    labelled = lot.random(total) < data.draw(st.sampled_from([0.2, 0.6, 1.0]))
    queries = np.flatnonzero(labelled[start : start + sizes[left]])
    found = rank(sides_of(distances, sizes, left, kept), queries, labelled, k)
    for place, query in enumerate(queries.tolist()):
        others = {at: float(distances[query, at]) for at in range(total) if at != start + query}
        everyone = sorted(others, key=others.__getitem__)
        true = [at for at in everyone if labelled[at]][:k]
        depth = int(found.depths[place])
        assert found.rows[place, :depth].tolist() == true[:depth]
        assert (found.rows[place, depth:] == NONE).all()
        assert found.distances[place, :depth].tolist() == [distances[query, at] for at in true[:depth]]
        # The `kept` nearest of all are certain, and everything is if no segment has more.
        certain = total if max(sizes) <= kept else kept
        assert depth >= len([at for at in everyone[:certain] if labelled[at]][:k])
        last = everyone.index(true[depth - 1]) + 1 if depth == k else None
        if last is not None:
            assert found.skipped[place] == last - depth


def test_nothing_to_rank() -> None:
    side = SegmentNeighbours(np.zeros((1, 0), NEAREST), 0, 0)
    found = rank([side], np.array([0]), np.array([True]), 3)
    assert found.depths.tolist() == [0]
    assert found.rows.tolist() == [[NONE] * 3]
    assert rank([side], np.empty(0, np.int64), np.array([False]), 3).rows.shape == (0, 3)
