"""The search from bounds of all distances, beside brute force in float64."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from stages.knn import bounded_search, quantised_copy
from stages.knn.backend import BoundsProvider, Distances, Rows, Vectors
from stages.knn.bounded_search import nearest
from stages.knn.joint_queries import DistanceMeasure, JointQueries, LibraryPart, PointCombination
from stages.knn.numpy_backend import NumpyBackend
from stages.knn.quantised_copy import QuantisedCopy
from stages.knn.top_k import NONE, TopK
from stages.knn.vector_set import VectorSet
from tests.stages.knn.oracle import brute

Make = Callable[[Vectors], BoundsProvider]
Mask = NDArray[np.bool_]


def small_quantised(library: Vectors) -> QuantisedCopy:
    """In several products, each with a width of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantised_copy, "_PRODUCT", 70 * library.shape[1])
        patch.setattr(quantised_copy, "_BLOCK", 32)
        return QuantisedCopy(library)


BOUNDINGS: list[Make] = [NumpyBackend, QuantisedCopy, small_quantised]
METRICS = ["euclidean", "cosine"]
EVERY_KIND: list[list[Make]] = [[NumpyBackend], [QuantisedCopy], [NumpyBackend, small_quantised, QuantisedCopy]]


def cut(library: Vectors, metric: str, makes: Sequence[Make], at: Sequence[int] = ()) -> list[LibraryPart]:
    """The library in parts that begin at 0 and at these rows, bounded in turns by these kinds."""
    starts = [0, *at]
    sets = [VectorSet(each, metric) for each in np.split(library, at)]
    return [
        LibraryPart(start, points, makes[number % len(makes)](points.prepared))
        for number, (start, points) in enumerate(zip(starts, sets, strict=True))
    ]


def nothing(count: int) -> NDArray[np.int64]:
    return np.full(count, NONE, np.int64)


def check(
    found: TopK,
    queries: Vectors,
    library: Vectors,
    k: int,
    metric: str,
    out: NDArray[np.int64],
    mask: Mask | None = None,
    *others: TopK,
) -> None:
    """One point a question: all are what brute force finds among the rows that are admitted and not left out."""
    kept = np.arange(len(library)) if mask is None else np.flatnonzero(mask)
    places = {row: place for place, row in enumerate(kept.tolist())}
    exclude = np.array([places.get(row, -1) for row in out.tolist()], np.int64)
    distances, near = brute(queries, library[kept], min(k, len(kept)), metric, exclude)
    for each in (found, *others):
        assert np.array_equal(each.distances, distances)
        assert np.array_equal(each.rows, np.where(np.isinf(distances), NONE, kept[near]))


@pytest.mark.parametrize("metric", METRICS)
def test_equals_float64_brute_force_on_hard_families(family: Vectors, metric: str) -> None:
    random = np.random.default_rng(3)
    queries = np.concatenate([family[:30], family[-30:], family[random.permutation(len(family))[:30]]])
    queries[::3] += (np.abs(queries[::3]) * 1e-6 * random.normal(size=queries[::3].shape)).astype(np.float32)
    kinds = [cut(family, metric, makes, [40, 41, 100]) for makes in EVERY_KIND]
    asked = VectorSet(queries, metric)
    for share in (1, 0.3, 0.04, 0):  # few rows are put together
        mask = None if share == 1 else random.random(len(family)) < share
        out = nothing(90) if mask is None else random.integers(-1, len(family), 90)
        if mask is not None:
            mask[-1] = True
        found = [nearest(parts, JointQueries.single(asked, out), 7, mask) for parts in kinds]
        check(found[0], queries, family, 7, metric, out, mask, *found[1:])


@pytest.mark.parametrize("make", BOUNDINGS)
def test_no_bound_exceeds_the_distance(family: Vectors, make: Make) -> None:
    held = make(family)
    queries = family[:: max(1, len(family) // 25)]
    for some in (queries[:1], queries[:3], queries):
        asked = held.ask(some)
        numbers = held.bounds(asked)
        assert numbers.shape == (len(some), len(family))
        assert not np.isnan(numbers).any()
        true = ((some[:, None].astype(np.float64) - family[None]) ** 2).sum(axis=2)
        bounds = asked.squares(numbers)
        assert (bounds <= true * (1 + 1e-9)).all()


def test_bounds_are_close_enough_to_rule_rows_out() -> None:
    random = np.random.default_rng(0)
    library = random.normal(size=(500, 64)).astype(np.float32)
    true = ((library[:9, None].astype(np.float64) - library[None]) ** 2).sum(axis=2)
    kinds: list[tuple[Make, float]] = [(NumpyBackend, 0.01), (QuantisedCopy, 12)]
    for make, slack in kinds:
        held = make(library)
        asked = held.ask(library[:9])
        assert (true - asked.squares(held.bounds(asked))).max() < slack


numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100),
    st.sampled_from([0.0, 1.0, 1 + 2.0**-23, 1e-45, 1e19, 1e30]).map(np.float32),
)
whole = st.integers(0, 2).map(np.float32)  # ties everywhere


@given(draw=st.data(), metric=st.sampled_from(METRICS), makes=st.sampled_from(EVERY_KIND))
@settings(deadline=None)
def test_any_vectors_at_all(draw: st.DataObject, metric: str, makes: list[Make]) -> None:
    elements = draw.draw(st.sampled_from([numbers, whole]))
    shape = st.tuples(st.integers(1, 60), st.integers(1, 6))
    library = draw.draw(arrays.arrays(np.float32, shape, elements=elements))
    cuts = draw.draw(st.sets(st.integers(1, max(1, len(library) - 1)), max_size=3))
    parts = cut(library, metric, makes, sorted(each for each in cuts if each < len(library)))
    count = draw.draw(st.integers(0, 5))
    queries = library[np.arange(count) % len(library)]
    out = draw.draw(arrays.arrays(np.int64, count, elements=st.integers(-1, len(library) - 1)))
    mask = draw.draw(st.none() | arrays.arrays(np.bool_, len(library)))
    k = draw.draw(st.integers(1, 70))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_search, "_FEW", draw.draw(st.sampled_from([1, 16])))
        found = nearest(parts, JointQueries.single(VectorSet(queries, metric), out), k, mask)
    check(found, queries, library, k, metric, out, mask)


@given(
    draw=st.data(),
    metric=st.sampled_from(METRICS),
    how=st.sampled_from(["any", "all"]),
    makes=st.sampled_from(EVERY_KIND),
)
@settings(deadline=None)
def test_questions_of_several_points(
    draw: st.DataObject, metric: str, how: PointCombination, makes: list[Make]
) -> None:
    elements = draw.draw(st.sampled_from([numbers, whole]))
    library = draw.draw(arrays.arrays(np.float32, st.tuples(st.integers(2, 50), st.integers(1, 5)), elements=elements))
    counts = np.array(draw.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)), np.int64)
    points = library[draw.draw(arrays.arrays(np.int64, int(counts.sum()), elements=st.integers(0, len(library) - 1)))]
    of = np.flatnonzero(draw.draw(arrays.arrays(np.bool_, len(counts))))
    out = draw.draw(arrays.arrays(np.int64, len(of), elements=st.integers(0, len(library) - 1)))
    mask = draw.draw(st.none() | arrays.arrays(np.bool_, len(library)))
    k = draw.draw(st.integers(1, 60))
    parts = cut(library, metric, makes, [len(library) // 2])
    asked, held = VectorSet(points, metric), VectorSet(library, metric)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_search, "_FEW", draw.draw(st.sampled_from([1, 16])))
        found = nearest(parts, JointQueries(asked, counts, how, of, out), k, mask)

    row = np.arange(len(library))
    pairs = np.stack([asked.distances(np.full(len(row), point), held, row) for point in range(len(points))])
    for question, some in enumerate(np.split(pairs, np.cumsum(counts)[:-1])):
        distances = some.min(axis=0) if how == "any" else some.max(axis=0)
        kept = row if mask is None else row[mask]
        left = kept[~np.isin(kept, out[of == question])]
        order = left[np.lexsort((left, distances[left]))][:k]
        missing = min(k, len(kept)) - len(order)
        assert found.rows[question].tolist() == [*order.tolist(), *[NONE] * missing]
        assert found.distances[question].tolist() == [*distances[order].tolist(), *[np.inf] * missing]


@pytest.mark.parametrize("at_once", [1, 4 * 512 * 3, 1 << 30])
@pytest.mark.parametrize("in_cache", [1, 1 << 30])
def test_sizes_of_steps_change_nothing(at_once: int, in_cache: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_search, "_AT_ONCE", at_once)
    monkeypatch.setattr(bounded_search, "_IN_CACHE", in_cache)
    monkeypatch.setattr(bounded_search, "_FEWEST", 1)
    random = np.random.default_rng(2)
    library = random.integers(0, 3, size=(500, 8)).astype(np.float32)
    queries = random.integers(0, 3, size=(17, 8)).astype(np.float32)
    parts = cut(library, "euclidean", [NumpyBackend, QuantisedCopy], [200])
    found = nearest(parts, JointQueries.single(VectorSet(queries), nothing(17)), 9)
    check(found, queries, library, 9, "euclidean", nothing(17))


def test_libraries_of_one_centre_share_what_is_asked() -> None:
    library = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    first = QuantisedCopy(library[:100])
    second = QuantisedCopy(library[100:], centre=first.centre)
    assert second.scheme is first.scheme
    assert QuantisedCopy(library[100:]).scheme is not first.scheme
    asked = first.ask(library[:5])
    true = ((library[:5, None].astype(np.float64) - library[None, 100:]) ** 2).sum(axis=2)
    assert (asked.squares(second.bounds(asked)) <= true).all()
    assert NumpyBackend(library[:100]).scheme is NumpyBackend(library[100:]).scheme


@given(st.floats(0, float(np.finfo(np.float32).max), width=32), st.sampled_from(METRICS), st.integers(1, 5000))
def test_a_limit_of_squares_is_beyond_the_distance(distance: float, metric: str, dimension: int) -> None:
    points = VectorSet(np.ones((1, dimension), np.float32), metric)
    limit = points.at_most(np.array([distance], np.float32))
    with np.errstate(over="ignore"):
        assert points.at_least(np.nextafter(limit, np.inf))[0] > np.float32(distance)
    assert np.isinf(points.at_most(np.array([np.inf], np.float32)))


def test_candidates_of_all_parts_are_compared_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    library = np.random.default_rng(0).normal(size=(320, 8)).astype(np.float32)
    calls: list[str] = []

    def counted(name: str) -> DistanceMeasure:
        measure: DistanceMeasure = getattr(VectorSet, name)

        def call(mine: VectorSet, rows: Rows, others: VectorSet, other_rows: Rows) -> Distances:
            calls.append(name)
            return measure(mine, rows, others, other_rows)

        return call

    for name in ("distances", "lower_bounds"):
        monkeypatch.setattr(VectorSet, name, counted(name))
    for metric in METRICS:
        parts = cut(library, metric, [NumpyBackend], range(20, 320, 20))
        calls.clear()
        found = nearest(parts, JointQueries.single(VectorSet(library[:1] + 1, metric), nothing(1)), 5)
        assert len(calls) <= 4
        check(found, library[:1] + 1, library, 5, metric, nothing(1))
