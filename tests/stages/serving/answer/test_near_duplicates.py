"""Near-duplicates among the pictures of an answer, and answers of k groups."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from stages.knn.backend import Vectors
from stages.knn.search_settings import SearchSettings
from stages.record.hashes import NO_VERDICT
from stages.record.sources import Source
from stages.serving.answer.near_duplicates import MOST_LISTED, NEAR, NEAR_BITS, fold_rows
from stages.serving.follow.snapshots import Snapshot
from stages.serving.search.mapped_library import MappedLibrary
from stages.serving.search.search_engine import SearchEngine
from tests.example_counts import examples
from tests.stages.serving import services
from tests.stages.serving.segments import ids, open_library, write_segment
from tests.stages.serving.services import Service

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder

BITS = (1 << NEAR_BITS) - 1
"""As many bits as near-duplicates may differ in."""

SEARCHES = 'lookalike_serve_batch_size_count{work="search"}'

SCENES, SHOTS, LARGE = 40, 9, 300
"""Scenes of up to so many shots each, and the shots of the first one."""


def groups(places: list[float], hashes: list[int], most: int = 100) -> list[int]:
    vectors = np.array([[each, 1.0] for each in places], np.float32).reshape(-1, 2)
    with tempfile.TemporaryDirectory() as root:
        held = open_library([write_segment(Path(root) / "0", ids("0", len(places)), vectors, hashes=hashes)])
        return list(fold_rows(held, np.arange(len(places)), most, NEAR))


def test_a_chain_of_near_pictures_is_no_group() -> None:
    assert groups([0.0, 0.5, 1.0, 1.5], [1 << 63] * 4) == [1, 1, 2, 2]
    assert groups([0.0] * 3, [1 << 63, 1 << 63 | BITS, 1 << 63 | BITS << 20 | BITS]) == [1, 1, 2]


def test_pictures_that_say_nothing_are_alone() -> None:
    assert groups([0.0] * 4, [NO_VERDICT, 1 << 63, NO_VERDICT, 1 << 63]) == [1, 2, 3, 2]


def test_the_last_group_ends_with_its_first_picture() -> None:
    assert groups([0.0, 0.5, 9.0, 9.5, 0.6], [1 << 63] * 5, 2) == [1, 1, 2]


@pytest.fixture(scope="module")
def bursts(embedder: "Embedder", tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A library of scenes, of which the shots are near-duplicates of each other."""
    random = np.random.default_rng(7)
    shots = [LARGE, *random.integers(1, SHOTS + 1, SCENES - 1).tolist()]
    count = sum(shots)
    dimension = embedder.spec.dimension
    of = random.permutation(np.repeat(np.arange(SCENES), shots))
    vectors = (random.normal(size=(SCENES, dimension)) * 0.5)[of] + random.normal(size=(count, dimension)) * 0.05
    hashes = (random.integers(1, 1 << 62, SCENES)[of] ^ (1 << random.integers(0, 60, count))).tolist()
    root = tmp_path_factory.mktemp("bursts")
    directories = []
    for name, some in zip("07c", np.array_split(np.arange(count), 3), strict=True):
        names = ids(name, len(some))
        held = {
            id: [Source(f"{'odd' if at % 2 else 'even'}/{at}.jpg", id, 9, 9, 9, "")]
            for id, at in zip(names, some, strict=True)
        }
        facts = {"dimension": dimension, "image_size": embedder.spec.image_size, "model": embedder.spec.sha256}
        drawn = [hashes[at] for at in some]
        directories.append(write_segment(root / name, names, vectors[some], held, facts, hashes=drawn))
    library = open_library(directories)
    snapshot = services.snapshot(library, embedder, root / "cache")
    return replace(snapshot, searching=SearchEngine(library, SearchSettings(backend="numpy"), {}))


@pytest.fixture(scope="module")
def service(bursts: Snapshot) -> Iterator[Service]:
    with services.running(bursts) as running:
        yield running


@cache
def facts(library: MappedLibrary) -> tuple[Vectors, list[int], list[str]]:
    """The vectors, hashes and first paths of all pictures."""
    rows = range(len(library))
    paths = [library.sources(row)[0].path for row in rows]
    return library.vectors(np.array(rows)), list(map(library.hash, rows)), paths


def ranked(library: MappedLibrary, asked: dict[str, Any]) -> list[tuple[int, float]]:
    """Rows and distances of all pictures that the question admits, in the order of the ranking."""
    held, _, paths = facts(library)
    vectors = held.astype(np.float64)
    if asked["metric"] == "cosine":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    points = [vectors[each] for each in asked["rows"]]
    squares = np.array([((vectors - each) ** 2).sum(axis=1) for each in points])
    away = squares / 2 if asked["metric"] == "cosine" else np.sqrt(squares)
    distances = away.min(axis=0) if asked["combine"] == "any" else away.max(axis=0)
    rows = [row for row, path in enumerate(paths) if path.startswith(asked["filter"])]
    return sorted(((row, float(distances[row])) for row in rows), key=lambda each: each[1])


def folded(library: MappedLibrary, rows: list[int]) -> list[int]:
    """The groups of a whole ranking, pair by pair."""
    vectors, hashes, _ = facts(library)
    first: list[int] = []
    found = []
    for row in rows:
        for group, head in enumerate(first):
            differing = (hashes[row] ^ hashes[head]).bit_count()
            if differing <= NEAR_BITS and np.linalg.norm(vectors[row] - vectors[head]) <= NEAR:
                found.append(group + 1)
                break
        else:
            first.append(row)
            found.append(len(first))
    return found


@given(data=st.data())
@settings(max_examples=examples(40))
def test_k_neighbours_are_the_first_k_groups_of_the_whole_ranking(
    data: st.DataObject, service: Service, bursts: Snapshot
) -> None:
    library = bursts.library
    asked: dict[str, Any] = {
        "rows": data.draw(st.lists(st.integers(0, len(library) - 1), min_size=1, max_size=2, unique=True)),
        "metric": data.draw(st.sampled_from(["euclidean", "cosine"])),
        "combine": data.draw(st.sampled_from(["any", "all"])),
        "filter": data.draw(st.sampled_from(["", "odd/", "even/", "even/1"])),
    }
    k = data.draw(st.sampled_from([1, 2, 5, 12, SCENES, 200]))
    ranking = ranked(library, asked)
    limit = data.draw(st.sampled_from([None, *(each for _, each in ranking[5::60])]))
    if limit is not None:
        limit += 1e-4
        ranking = [each for each in ranking if each[1] <= limit]
    numbers = folded(library, [row for row, _ in ranking])
    whole = numbers.index(k) + 1 if k in numbers else len(numbers)
    question = {name: asked[name] for name in ("metric", "combine", "filter")} | {"k": k, "max_distance": limit}
    question["pictures"] = [{"id": library.id(row)} for row in asked["rows"]]
    found = service.search(question).data["neighbors"]
    expected = list(zip(range(1, whole + 1), (library.id(row) for row, _ in ranking), numbers, strict=False))
    listed = [each for at, each in enumerate(expected) if at < k or numbers[:at].count(each[2]) <= MOST_LISTED]
    assert [(each["rank"], each["id"], each["group"]) for each in found] == listed
    assert len({each["group"] for each in found}) == min(k, max(numbers, default=0))


def test_the_library_is_searched_again_only_where_pictures_were_folded(service: Service, bursts: Snapshot) -> None:
    library = bursts.library
    alone, crowded = (
        next(row for row in range(len(library)) if (folded(library, nearest(library, row, 2)) == [1, 2]) is apart)
        for apart in (True, False)
    )
    made = []
    for row in (alone, crowded):
        before = service.metric(SEARCHES)
        assert service.search({"id": library.id(row), "k": 2}).status == 200
        made.append(service.metric(SEARCHES) - before)
    assert made[0] == 1 < made[1]


def nearest(library: MappedLibrary, row: int, k: int) -> list[int]:
    return [each for each, _ in ranked(library, {"rows": [row], "metric": "", "combine": "any", "filter": ""})[:k]]
