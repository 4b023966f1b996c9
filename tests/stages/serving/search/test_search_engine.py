"""Searches of an open library: those of the search stage and of brute force, to the last bit."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stages import search
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files.tables.image_table import ImageTable
from stages.files.tables.neighbour_table import NeighbourTable
from stages.knn.joint_queries import PointCombination
from stages.knn.search_settings import SearchSettings
from stages.knn.top_k import NONE, TopK
from stages.knn.vector_set import VectorSet
from stages.record.origin import Origin
from stages.serving.search.mapped_library import MappedLibrary
from stages.serving.search.search_engine import SearchEngine
from tests.stages.image_tables import unseen
from tests.stages.knn.oracle import brute
from tests.stages.serving.memory import MemoryPeak, anonymous, resident_of
from tests.stages.serving.segments import MODEL, open_library, write_index

Mask = NDArray[np.bool_]

CPU = {"CUDA_VISIBLE_DEVICES": ""}
BACKENDS = ("auto", "numpy", "faiss", "sklearn")


def vectors(count: int = 150, dimension: int = 12) -> NDArray[np.float32]:
    """With twenty copies of one vector, over two segments, and a few in which half of the numbers are the same."""
    random = np.random.default_rng(4)
    made = random.normal(size=(count, dimension)).astype(np.float32)
    made[30:50] = made[30]
    made[60:70, : dimension // 2] = made[60, : dimension // 2]
    return made


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> MappedLibrary:
    return open_library(write_index(tmp_path_factory.mktemp("search") / "index", vectors()))


@pytest.fixture(scope="module")
def engine(library: MappedLibrary) -> Callable[[str], SearchEngine]:
    """The searches of that library by a backend."""
    return cache(lambda backend: searching(library, backend))


def searching(
    library: MappedLibrary, backend: str = "auto", metric: str = "euclidean", copied: bool = True
) -> SearchEngine:
    made = SearchEngine(library, SearchSettings(backend=backend, metric=metric), CPU)
    if copied:
        assert made.prepared(60)
    return made


def expected(
    queries: NDArray[np.float32],
    k: int,
    metric: str,
    known: Sequence[int | None],
    within: Mask | None = None,
) -> TopK:
    """By brute force: a known row first, at distance 0; missing neighbours at the end."""
    every = vectors()
    kept = np.arange(len(every)) if within is None else np.flatnonzero(within)
    columns = min(k, len(kept))
    found = TopK(np.full((len(queries), columns), np.inf, np.float32), np.full((len(queries), columns), NONE))
    for number, (query, row) in enumerate(zip(queries, known, strict=True)):
        others = kept[kept != row]
        distances, places = brute(query[None], every[others], columns, metric)
        first = [] if row is None or row not in kept else [(np.float32(0), row)]
        pairs = [*first, *zip(distances[0], others[places[0]], strict=True)][:columns]
        for rank, (distance, each) in enumerate(pairs):
            found.distances[number, rank], found.rows[number, rank] = distance, each
    return found


def same(one: TopK, other: TopK) -> bool:
    return np.array_equal(one.rows, other.rows) and np.array_equal(one.distances, other.distances)


QUERIES = np.concatenate([vectors()[[3, 40, 30, 149]], vectors()[[7, 31]] + np.float32(0.1)])
KNOWN = [3, 40, None, 149, None, None]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_nearest_of_every_query(backend: str, metric: str, engine: Callable[[str], SearchEngine]) -> None:
    for k in (1, 5, 149, 150, 400):
        found = engine(backend).search(QUERIES, k, metric=metric, known=KNOWN)
        assert same(found.topk, expected(QUERIES, k, metric, KNOWN))
        assert (found.exact, found.recall) == (True, None)


@pytest.mark.parametrize("backend", BACKENDS)
def test_before_the_copies_are_made(backend: str, library: MappedLibrary) -> None:
    found = searching(library, backend, copied=False).search(QUERIES, 5, known=KNOWN)
    assert same(found.topk, expected(QUERIES, 5, "euclidean", KNOWN))


def write_entry(
    directory: Path, library: MappedLibrary, queries: NDArray[np.float32], known: Sequence[int | None]
) -> Path:
    """The entry of queries as features-queries writes it. Known ones have their library ids."""
    names = [f"{number:01x}" * 64 if row is None else library.id(row) for number, row in enumerate(known, start=9)]
    order = sorted(range(len(names)), key=names.__getitem__)
    directory.mkdir(parents=True)
    images = ImageTable(
        ids=[names[at] for at in order],
        sources=[()] * len(names),
        thumbnail_sizes=[0] * len(names),
        hashes=[0] * len(names),
        **unseen(len(names)),
        origin=Origin(MODEL, "pad", 96, 12),
    )
    images.write(directory / "images.parquet")
    np.save(directory / "vectors.npy", queries[order])
    return directory


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_answers_are_those_of_the_search_stage_over_all_segments(backend: str, metric: str, tmp_path: Path) -> None:
    """Each segment searched by the stage, and merged by distance, then by id, the picture itself first."""
    directories = write_index(tmp_path / "index", vectors())
    library = open_library(directories)
    entry = write_entry(tmp_path / "queries" / "3f" / "e", library, QUERIES, KNOWN)
    process = search.start(CPU | {"K": "9", "METRIC": metric, "BACKEND": backend})
    merged: dict[str, list[tuple[float, bool, str]]] = {}
    for each in directories:
        bucket = DatumInput("queries", entry.parent, "queries/3f", "")
        inputs = {"index": DatumInput("index", each, each.name, ""), "queries": bucket}
        process(Datum(inputs, tmp_path / "out"))
        for near in NeighbourTable.read(tmp_path / "out" / "e" / f"{each.name}.parquet"):
            merged.setdefault(near.query, []).append((near.distance, near.id != near.query, near.id))
    answers = {query: [(id, distance) for distance, _, id in sorted(found)[:9]] for query, found in merged.items()}

    found = searching(library, backend, metric).search(QUERIES, 9, known=KNOWN).topk
    for number, row in enumerate(KNOWN):
        query = f"{number + 9:01x}" * 64 if row is None else library.id(row)
        mine = [(library.id(at), float(d)) for at, d in zip(found.rows[number], found.distances[number], strict=True)]
        assert mine == answers[query]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_among_some_pictures_only(backend: str, metric: str, engine: Callable[[str], SearchEngine]) -> None:
    random = np.random.default_rng(1)
    masks = [random.random(150) < share for share in (0.02, 0.5, 0.98)]
    masks += [np.zeros(150, np.bool_), np.ones(150, np.bool_), np.arange(150) == 149, np.arange(150) < 38]
    for mask in masks:
        found = engine(backend).search(QUERIES, 6, metric=metric, known=KNOWN, within=mask)
        assert same(found.topk, expected(QUERIES, 6, metric, KNOWN, mask))


def combination(
    queries: NDArray[np.float32],
    k: int,
    how: str,
    metric: str,
    known: Sequence[int | None],
    mask: NDArray[np.bool_] | None,
) -> TopK:
    """By the distances of all pairs."""
    every = VectorSet(vectors(), metric)
    asked = VectorSet(queries, metric)
    row = np.arange(len(every))
    pairs = np.stack([asked.distances(np.full(len(row), number), every, row) for number in range(len(queries))])
    for number, each in enumerate(known):
        if each is not None:
            pairs[number, each] = -1 if how == "any" else 0
    distances = pairs.min(axis=0) if how == "any" else pairs.max(axis=0)
    kept = row if mask is None else np.flatnonzero(mask)
    order = kept[np.lexsort((kept, distances[kept]))][:k]
    return TopK(np.maximum(distances[order], 0)[None], order[None])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("how", ["any", "all"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_several_pictures_asked_together(
    backend: str, how: PointCombination, metric: str, engine: Callable[[str], SearchEngine]
) -> None:
    made = engine(backend)
    mask = np.random.default_rng(2).random(150) < 0.3
    for k in (1, 7, 150, 200):
        for within in (None, mask):
            for some in (slice(0, 1), slice(0, 3), slice(0, 6), slice(4, 6)):
                found = made.combined(QUERIES[some], k, how=how, metric=metric, known=KNOWN[some], within=within)
                assert same(found.topk, combination(QUERIES[some], k, how, metric, KNOWN[some], within))


def test_two_vectors_of_one_picture(engine: Callable[[str], SearchEngine]) -> None:
    """From two kinds of device: a picture still finds itself first, and is at 0 from itself."""
    made = engine("auto")
    other = vectors()[[30, 90]] * np.float32(1.001)
    found = made.search(other, 3, known=[45, 90]).topk
    assert found.rows[:, 0].tolist() == [45, 90]
    assert found.distances[:, 0].tolist() == [0, 0]
    assert found.rows[0, 1:].tolist() == [30, 31]
    assert made.combined(other, 2, how="any", known=[45, 90]).topk.rows.tolist() == [[45, 90]]
    together = made.combined(other[:1], 1, how="all", known=[45]).topk
    assert (together.rows.tolist(), together.distances.tolist()) == ([[45]], [[0]])


def test_more_queries_than_are_bounded_at_once(
    engine: Callable[[str], SearchEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stages.knn.bounded_search._AT_ONCE", 4 * 150 * 4)
    known = list(range(0, 150, 3))
    found = engine("auto").search(vectors()[known], 4, known=known)
    assert same(found.topk, expected(vectors()[known], 4, "euclidean", known))


def test_no_queries(engine: Callable[[str], SearchEngine]) -> None:
    assert engine("auto").search(vectors()[:0], 4).topk.rows.shape == (0, 4)


def test_huge_vectors_among_others(tmp_path: Path) -> None:
    """Some too long for 8-bit integers, and some whose products overflow."""
    made = vectors()
    made[::7] *= np.float32(1e12)
    made[::31] *= np.float32(1e24)
    library = open_library(write_index(tmp_path / "index", made))
    distances, rows = brute(made[:40], made, 5)
    for backend in BACKENDS:
        found = searching(library, backend).search(made[:40], 5).topk
        assert same(found, TopK(distances, rows))


def test_a_query_that_cannot_be_compared(engine: Callable[[str], SearchEngine]) -> None:
    made = engine("auto")
    with pytest.raises(StageError, match="NaN"):
        made.search(np.full((1, 12), np.nan, np.float32), 3)
    with pytest.raises(ValueError, match="12 dimensions"):
        made.search(np.zeros((1, 13), np.float32), 3)
    with pytest.raises(ValueError, match="1 rows of 2 points"):
        made.search(np.zeros((2, 12), np.float32), 3, known=[None])


def test_a_vector_of_the_library_that_cannot_be_compared_is_named(tmp_path: Path) -> None:
    made = vectors()
    made[80, 3] = np.inf
    library = open_library(write_index(tmp_path / "index", made))
    with pytest.raises(StageError, match=f"picture {library.id(80)} has numbers that are NaN or infinite"):
        searching(library)


def test_unchanged_segments_are_taken_over(tmp_path: Path) -> None:
    directories = write_index(tmp_path / "index", vectors())
    before = searching(open_library(directories))
    before.search(QUERIES, 3, metric="cosine")
    assert before.prepared(60)
    changed = write_index(tmp_path / "more", vectors() + 1)
    library = open_library([directories[0], changed[1], *directories[2:]])
    after = SearchEngine(library, SearchSettings(), CPU, reuse=before)
    assert after.prepared(60)
    kept = [one is other for one, other in zip(before._made["euclidean"], after._made["euclidean"], strict=True)]
    assert kept == [True, False, True, True]
    made = np.concatenate([each.vectors for each in library.segments])
    for metric in ("euclidean", "cosine"):
        distances, rows = brute(QUERIES, made, 4, metric)
        assert same(after.search(QUERIES, 4, metric=metric).topk, TopK(distances, rows))
    assert [one is other for one, other in zip(before._made["cosine"], after._made["cosine"], strict=True)] == kept
    assert {key for key, _ in after._segments} == {each.key for each in library.segments}


def test_vectors_leave_the_memory_once_they_are_copied(tmp_path: Path) -> None:
    index = write_index(tmp_path / "index", vectors(4096, 512))
    library = open_library(index)
    made = SearchEngine(library, SearchSettings(), CPU)
    assert made.prepared(60)
    files = [str(each.vectors.filename) for each in library.segments if isinstance(each.vectors, np.memmap)]
    size = 4096 * 512 * 4
    assert len(files) == len(index)
    assert sum(map(resident_of, files)) < size / 8
    found = made.search(vectors(4096, 512)[[3]], 4096, known=[3])
    assert found.topk.rows[0, 0] == 3
    assert sum(map(resident_of, files)) > size / 2


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_vectors_are_not_held_in_memory(metric: str, tmp_path: Path) -> None:
    """Of none of the metrics: neither as they are nor in unit length."""
    library = open_library(write_index(tmp_path / "index", vectors(8192, 1024)))
    size, point = len(library) * 1024 * 4, library.vectors(np.array([3]))
    with MemoryPeak(anonymous) as peak:
        made = searching(library, "numpy", metric)
        found = made.search(point, 5, known=[3])
    assert peak.growth < size / 2
    assert found.topk.rows[0, 0] == 3


def test_a_closed_one_still_answers(library: MappedLibrary) -> None:
    made = searching(library, copied=False)
    made.close()
    assert made.prepared(0)
    assert same(made.search(QUERIES, 5, known=KNOWN).topk, expected(QUERIES, 5, "euclidean", KNOWN))
