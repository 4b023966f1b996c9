"""The search stage as in production: a segment and a bucket of entries, whose files are pipes, as Pachyderm's lazy
inputs are."""

import json
import shutil
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from benchmarks.kit.madeindex import MadeIndex
from stages import search
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files import thumbnail_files
from stages.files.tables.image_table import ImageTable
from stages.files.tables.index_table import IndexTable
from stages.files.tables.neighbour_table import NeighbourTable
from stages.record.origin import Origin
from stages.record.sources import Source
from stages.report.query_sample import most_pictured, sheet_queries
from tests.example_counts import examples
from tests.pipes import Pipes
from tests.stages.file_trees import tree
from tests.stages.image_tables import MODEL, image_table
from tests.stages.serving import segments

CPU = {"CUDA_VISIBLE_DEVICES": ""}


def write_pictures(
    directory: Path,
    ids: Sequence[str],
    vectors: NDArray[np.floating[Any]],
    model: str = MODEL,
    image_size: int = 96,
    fit: str = "pad",
    backend: str = "tensorflow",
) -> Path:
    """Vectors, written as float32, and their tables as index (a segment) and features-queries (an entry) write them."""
    directory.mkdir(parents=True, exist_ok=True)
    thumbnails = [b"jpeg of " + id.encode() for id in ids]
    sources = [(Source(f"{id[:5]}.jpg", id), Source(f"copy of {id[:5]}.jpg", id)) for id in ids]
    origin = Origin(model, fit, image_size, vectors.shape[1], backend=backend)
    images = image_table(ids, 0, sources, thumbnails, origin=origin)
    if directory.parent.name == "index":
        segments.write_table(directory, images, vectors, thumbnails)
    else:
        images.write(directory / "images.parquet")
        thumbnail_files.write(directory / "images.thumbnails", thumbnails)
        np.save(directory / "vectors.npy", vectors.astype(np.float32))
    return directory


def ids(start: str, count: int) -> list[str]:
    return [f"{start}{row:0{64 - len(start)}x}" for row in range(count)]


def datum(segment: Path, bucket: Path, out: Path, commit: str = "", asked: str = "") -> Datum:
    return Datum(
        {
            "index": DatumInput("index", segment, segment.name, commit),
            "queries": DatumInput("queries", bucket, f"queries/{bucket.name}", asked),
        },
        out,
    )


def run(segment: Path, entry: Path, out: Path, environment: Mapping[str, str] = CPU) -> NeighbourTable:
    """The answers to an entry, which are written with those to the others of its bucket."""
    search.start({**CPU, **environment})(datum(segment, entry.parent, out))
    return NeighbourTable.read(out / entry.name / f"{segment.name}.parquet")


@pytest.fixture
def library() -> NDArray[np.float32]:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(90, 10)).astype(np.float32)
    vectors[30:50] = vectors[30]
    return vectors


@pytest.fixture
def segment(tmp_path: Path, library: NDArray[np.float32]) -> Path:
    directory = write_pictures(tmp_path / "index" / "a", ids("a", 90), library)
    (directory / "index.json").write_text("{}\n")
    np.save(directory / "knn.npy", np.zeros(3))
    return directory


@pytest.fixture
def entry(tmp_path: Path, library: NDArray[np.float32]) -> Path:
    """Five queries: two in the library, one of them among exact copies; one with a copy's vector; two new."""
    names = sorted([*ids("a", 41)[3:4], *ids("a", 41)[40:41], *ids("b", 3)])
    vectors = np.stack([library[3], library[40], library[30], library[7] + 0.1, library[8] - 0.2])
    return write_pictures(tmp_path / "queries" / "3f" / "trip", names, vectors)


def test_the_nearest_of_every_query(segment: Path, entry: Path, tmp_path: Path, library: NDArray[np.float32]) -> None:
    found = run(segment, entry, tmp_path / "out", {"K": "4"})
    assert (found.origin.model, found.metric, found.k) == (MODEL, "euclidean", 4)
    queries = ImageTable.read(entry / "images.parquet").ids
    vectors = np.load(entry / "vectors.npy").astype(np.float64)
    rows = iter(found)
    for query, vector in zip(queries, vectors, strict=True):
        distances = np.sqrt(((vector - library.astype(np.float64)) ** 2).sum(axis=1)).astype(np.float32)
        others = [int(row) for row in np.argsort(distances, kind="stable") if ids("a", 90)[row] != query]
        itself = [int(row) for row in range(90) if ids("a", 90)[row] == query]
        for rank, row in enumerate((itself + others)[:4]):
            neighbour = next(rows)
            assert neighbour[:4] == (query, rank, ids("a", 90)[row], distances[row])
            assert [source.path for source in neighbour.sources] == [
                f"{neighbour.id[:5]}.jpg",
                f"copy of {neighbour.id[:5]}.jpg",
            ]
            assert neighbour.thumbnail == b"jpeg of " + neighbour.id.encode()
    assert next(rows, None) is None


def test_a_picture_of_the_library_finds_itself_at_zero_by_its_id(
    segment: Path, tmp_path: Path, library: NDArray[np.float32]
) -> None:
    """Even if its vector comes from another kind of device, so that the search would not return it."""
    entry = write_pictures(tmp_path / "queries" / "3f" / "e", [ids("a", 90)[60]], library[5:6])
    found = run(segment, entry, tmp_path / "out", {"K": "2"})
    assert [row[:4] for row in found] == [
        (ids("a", 90)[60], 0, ids("a", 90)[60], 0.0),
        (ids("a", 90)[60], 1, ids("a", 90)[5], 0.0),
    ]


def test_a_picture_comes_before_others_with_its_vector(
    segment: Path, tmp_path: Path, library: NDArray[np.float32]
) -> None:
    entry = write_pictures(tmp_path / "queries" / "3f" / "e", [ids("a", 90)[49]], library[49:50])  # the last of twenty
    found = run(segment, entry, tmp_path / "out")
    assert list(found.ids) == [ids("a", 90)[row] for row in (49, 30, 31)]
    assert list(found.distances) == [0, 0, 0]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_bytes_do_not_depend_on_the_backend(metric: str, segment: Path, entry: Path, tmp_path: Path) -> None:
    for backend in ("faiss", "sklearn", "auto"):
        assert run(segment, entry, tmp_path / backend, {"METRIC": metric, "BACKEND": backend}).metric == metric
    assert len({(tmp_path / each / "trip" / "a.parquet").read_bytes() for each in ("faiss", "sklearn", "auto")}) == 1


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_segment_smaller_than_k(count: int, entry: Path, tmp_path: Path, library: NDArray[np.float32]) -> None:
    small = write_pictures(tmp_path / "index" / "s", ids("a", count), library[:count])
    found = run(small, entry, tmp_path / "out", {"K": "7"})
    assert len(found) == 5 * count
    assert found.k == 7


def test_only_the_shown_queries_have_thumbnails(segment: Path, tmp_path: Path) -> None:
    k = 25
    names = ids("c", 130)
    entry = write_pictures(tmp_path / "queries" / "3f" / "many", names, np.random.default_rng(1).normal(size=(130, 10)))
    found = run(segment, entry, tmp_path / "out", {"K": str(k)})
    drawn = set(sheet_queries("many", names, most_pictured(k)))
    assert len(drawn) == most_pictured(k) == 120
    assert {row.query for row in found if row.thumbnail is not None} == drawn
    assert {row.query for row in found if row.thumbnail is None} == set(names) - drawn


def test_pipes_are_read_once_and_the_segment_kept_for_the_next_bucket(
    segment: Path, entry: Path, tmp_path: Path, library: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    spools = tmp_path / "tmp"
    spools.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spools))
    other = write_pictures(tmp_path / "queries" / "40" / "other", ids("d", 2), library[:2] + 0.5)
    process = search.start(CPU)
    pipes = Pipes(segment, tmp_path / "pfs" / "index" / "a")
    process(datum(pipes.directory, entry.parent, tmp_path / "lazy", "1234"))
    process(datum(pipes.directory, other.parent, tmp_path / "lazy", "1234"))
    shown = [f"thumbnails/part{number}.thumbnails" for number in range(segments.PARTS)]
    points = [f"vectors/part{number}.npy" for number in range(segments.PARTS)]
    assert sorted(pipes.opened) == ["images.parquet", *shown, *points]
    assert list(spools.iterdir()) == []  # nothing would be left if this process were killed now
    for each in (entry, other):
        run(segment, each, tmp_path / "plain")
    assert tree(tmp_path / "lazy") == tree(tmp_path / "plain")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment that is large enough for vectors in 8 bits, as index writes it."""
    return MadeIndex(16 * 2100).write(tmp_path_factory.mktemp("made"), "7")


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("filter", ["", "library/7[0-3]*"])
def test_one_query_reads_what_its_first_look_leaves(metric: str, filter: str, made: Path, tmp_path: Path) -> None:
    vectors, table = segments.vectors_of(made), IndexTable.read(made / "images.parquet")
    queries = np.stack([vectors[5], vectors[9] * np.float32(1.01)])
    for name, some in (("one", slice(1)), ("two", slice(1, 2))):
        names = [table.ids[5]] if name == "one" else ids("b", 1)
        place = write_pictures(tmp_path / "queries" / name / name, names, queries[some], image_size=224)
        if filter:
            (place / "question.json").write_text(json.dumps({"filter": filter}))
    process = search.start({**CPU, "METRIC": metric, "K": "2"})
    opened: list[list[str]] = []
    for name in ("one", "two", "one"):
        pipes = Pipes(made, tmp_path / "pfs" / str(len(opened)) / "7")
        process(datum(pipes.directory, tmp_path / "queries" / name, tmp_path / "lazy", "1234"))
        opened.append([each for each in pipes.opened if each.startswith(("coarse", "vectors"))])
    pieces = len(list((made / "vectors").iterdir()))
    assert sum(each.startswith("coarse") for each in opened[0]) == len(list((made / "coarse").iterdir())) == pieces / 4
    points = [each for one in opened for each in one if each.startswith("vectors")]
    assert 1 <= len(points) < pieces / 2
    assert len(points) == len(set(points))  # none is read again for another datum
    assert opened[2] == []
    for name in ("one", "two"):  # all vectors, with a backend of the user's choice
        search.start({**CPU, "METRIC": metric, "K": "2", "BACKEND": "faiss"})(
            datum(made, tmp_path / "queries" / name, tmp_path / "plain")
        )
    assert tree(tmp_path / "lazy") == tree(tmp_path / "plain")
    many = write_pictures(tmp_path / "queries" / "m" / "many", ids("c", 20), vectors[:20] + 0.01, image_size=224)
    pipes = Pipes(made, tmp_path / "pfs" / "many" / "7")
    search.start(CPU)(datum(pipes.directory, many.parent, tmp_path / "out", "1234"))
    assert not [each for each in pipes.opened if each.startswith("coarse")]


def test_damaged_rows_in_8_bits_are_named(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made, tmp_path / "7")
    entry = write_pictures(tmp_path / "queries" / "3f" / "trip", ids("b", 1), np.ones((1, 1280)), image_size=224)
    (first, *_) = sorted((copy / "coarse").iterdir())
    whole = first.read_bytes()
    for content in (b"", whole[:-3], (copy / "hashes.npy").read_bytes()):
        first.write_bytes(content)
        with pytest.raises(StageError, match="the coarse rows of segment 7 cannot be read .*--reprocess index"):
            run(copy, entry, tmp_path / "out")
    first.unlink()
    with pytest.raises(StageError, match="rows of 2100 pictures"):
        run(copy, entry, tmp_path / "out")


def test_thumbnails_of_other_parts_are_not_opened_and_may_be_damaged(
    segment: Path, tmp_path: Path, library: NDArray[np.float32]
) -> None:
    entry = write_pictures(tmp_path / "queries" / "41" / "one", ids("a", 4)[3:], library[3:4])
    pipes = Pipes(segment, tmp_path / "pfs" / "index" / "a")
    search.start({**CPU, "K": "1"})(datum(pipes.directory, entry.parent, tmp_path / "lazy", "1234"))
    assert [each for each in pipes.opened if each.startswith("thumbnails/")] == ["thumbnails/part0.thumbnails"]
    for part in ("part1", "part2"):
        (segment / "thumbnails" / f"{part}.thumbnails").write_bytes(b"")
    (found,) = run(segment, entry, tmp_path / "plain", {"K": "1"})
    assert found.thumbnail == b"jpeg of " + ids("a", 4)[3].encode()
    with pytest.raises(StageError, match=r"part1\.thumbnails is not the file of thumbnails that its table describes"):
        run(segment, entry, tmp_path / "more", {"K": "40"})


@pytest.fixture
def others(tmp_path: Path, library: NDArray[np.float32]) -> tuple[Path, Path]:
    """Another entry, in a bucket of its own, and another segment."""
    other = write_pictures(tmp_path / "queries" / "40" / "other", ids("d", 2), library[:2] + 0.5)
    return other, write_pictures(tmp_path / "index" / "b", ids("b", 90), library + 1)


@pytest.mark.parametrize("room", [0, 500, 1 << 20])
def test_entries_are_read_once_and_kept_for_the_next_segment(
    room: int, segment: Path, entry: Path, others: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that find room; others are read for each segment, and the answers are the same."""
    monkeypatch.setattr("stages.search._ROOM", room)
    other, second = others
    process = search.start(CPU)
    opened = []
    for each in (segment, second):
        for bucket in (entry.parent, other.parent):
            pipes = Pipes(bucket, tmp_path / "pfs" / each.name / bucket.name)
            process(datum(each, pipes.directory, tmp_path / "lazy", "1234", "c0ffee"))
            run(each, bucket / ("trip" if bucket == entry.parent else "other"), tmp_path / "plain")
            opened += pipes.opened
    assert tree(tmp_path / "lazy") == tree(tmp_path / "plain")
    read = {"trip": 1 if room > 1000 else 2, "other": 1 if room else 2}
    assert sorted(opened) == sorted(
        f"{name}/{file}" for name in read for file in ["images.parquet", "vectors.npy"] * read[name]
    )

    again = write_pictures(tmp_path / "again" / "trip", ids("e", 2), np.ones((2, 10)))
    process(datum(second, again.parent, tmp_path / "lazy", "1234", "decaf"))  # the entry at another commit
    assert set(NeighbourTable.read(tmp_path / "lazy" / "trip" / "b.parquet").queries) == set(ids("e", 2))


@pytest.mark.parametrize(("room", "reads"), [(0, 2), (1 << 20, 1)])
def test_segments_are_kept_for_the_next_job_where_they_find_room(
    room: int,
    reads: int,
    segment: Path,
    entry: Path,
    others: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the answers are the same, with thumbnails that are read anew."""
    monkeypatch.setattr("stages.search._SEGMENTS", room)
    other, second = others
    process = search.start(CPU)
    opened = []
    for query, commit in ((entry, "c0ffee"), (other, "decaf")):
        for each in (segment, second):
            pipes = Pipes(each, tmp_path / "pfs" / commit / each.name)
            process(datum(pipes.directory, query.parent, tmp_path / "kept", "1234", commit))
            run(each, query, tmp_path / "plain")
            opened += pipes.opened
            assert any(file.startswith("thumbnails/") for file in pipes.opened)
    assert tree(tmp_path / "kept") == tree(tmp_path / "plain")
    assert opened.count("vectors/part1.npy") == opened.count("images.parquet") == 2 * reads


@settings(max_examples=examples(25), deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    pictures=st.integers(1, 12),
    together=st.integers(0, 12),
    k=st.integers(1, 5),
    metric=st.sampled_from(["euclidean", "cosine"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_bucket_has_the_answers_that_each_entry_has_alone(
    sizes: list[int], pictures: int, together: int, k: int, metric: str, seed: int
) -> None:
    """Byte by byte, whatever the other entries are: pictures of the library, its copies, and new ones."""
    random = np.random.default_rng(seed)
    library = random.integers(-2, 3, (pictures, 3)).astype(np.float32)  # with equal vectors, and zero among them
    environment = CPU | {"K": str(k), "METRIC": metric}
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr("stages.search._TOGETHER", together)
        place = Path(directory)
        segment = write_pictures(place / "index" / "a", ids("a", pictures), library)
        for number, size in enumerate(sizes):
            known = random.choice(pictures, min(size // 2, pictures), replace=False)
            vectors = np.concatenate([library[known], random.integers(-2, 3, (size - len(known), 3))])
            names = [*(ids("a", pictures)[row] for row in known), *ids(f"b{number}", size - len(known))]
            order = np.argsort(names)
            for bucket in ("3f", f"alone-{number}"):
                entry = place / "queries" / bucket / f"entry {number}"
                write_pictures(entry, [names[row] for row in order], vectors[order].reshape(-1, 3))
        search.start(environment)(datum(segment, place / "queries" / "3f", place / "together"))
        for number in range(len(sizes)):
            search.start(environment)(datum(segment, place / "queries" / f"alone-{number}", place / "alone"))
        assert tree(place / "together") == tree(place / "alone")
        assert len(tree(place / "alone")) == sum(map(bool, sizes))


@pytest.mark.parametrize("filter", ["*000[01]?.jpg", "copy of 0000", "0002a.jpg", "nowhere/"])
@pytest.mark.parametrize("settings", [{}, {"BACKEND": "faiss"}, {"METRIC": "cosine"}])
def test_a_filter_admits_some_pictures(
    filter: str, settings: dict[str, str], entry: Path, tmp_path: Path, library: NDArray[np.float32]
) -> None:
    """The answer is that of a segment without the others; an entry without a question is answered as it is alone."""
    names = [f"{row:05x}" for row in range(90)]
    within = [
        row for row, name in enumerate(names) if fnmatch(f"{name}.jpg", filter) or f"copy of {name}".startswith(filter)
    ]
    library_ids = [name + "0" * 59 for name in names]
    segment = write_pictures(tmp_path / "index" / "0", library_ids, library)
    own = np.concatenate([library[17:18], np.load(entry / "vectors.npy")])
    asking = write_pictures(entry.parent / "asking", [library_ids[17], *ids("b", 5)], own)
    (asking / "question.json").write_text(json.dumps({"filter": filter}))
    environment = {"K": "4", **settings}
    plain = run(segment, entry, tmp_path / "out", environment)
    found = NeighbourTable.read(tmp_path / "out" / "asking" / "0.parquet")
    assert (found.k, len(found)) == (4, 6 * min(4, len(within)))
    asking = asking.rename(entry.parent.parent / "asking")
    if within:
        (asking / "question.json").unlink()
        few = write_pictures(tmp_path / "few" / "index" / "0", [library_ids[row] for row in within], library[within])
        assert [each[:4] for each in found] == [each[:4] for each in run(few, asking, tmp_path / "few", environment)]
    assert list(plain) == list(run(segment, entry, tmp_path / "plain", environment))


def test_files_beside_the_entries_of_a_bucket(segment: Path, entry: Path, tmp_path: Path) -> None:
    """As in the layout of earlier versions, whose entries were not in buckets."""
    with pytest.raises(StageError, match=r"/queries/trip holds images.parquet, not directories of entries.*reprocess"):
        search.start(CPU)(datum(segment, entry, tmp_path / "out"))


@pytest.mark.parametrize("table", [True, False])
def test_an_entry_without_pictures_gives_no_output(table: bool, segment: Path, tmp_path: Path) -> None:
    entry = write_pictures(tmp_path / "queries" / "3f" / "none", [], np.empty((0, 10)))
    if not table:
        (entry / "images.parquet").unlink()
    (entry / "rejected.jsonl").write_text('{"reason": "not a picture"}\n')
    search.start(CPU)(datum(segment, entry.parent, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("other", "dimension", "said"),
    [
        ({"model": "beef" * 16}, 10, "beef" * 16),
        ({"image_size": 160}, 10, "160"),
        ({"fit": "crop"}, 10, "crop"),
        ({}, 9, "9 dimensions"),
    ],
)
def test_two_models_or_sizes_cannot_be_compared(
    other: dict[str, Any], dimension: int, said: str, segment: Path, tmp_path: Path
) -> None:
    entry = write_pictures(tmp_path / "queries" / "3f" / "e", ids("b", 2), np.zeros((2, dimension)), **other)
    with pytest.raises(
        StageError, match="would be meaningless. Set the same IMAGE_SIZE and FIT in the specs"
    ) as failure:
        run(segment, entry, tmp_path / "out")
    assert MODEL in str(failure.value)
    assert "the entry e with" in str(failure.value) and said in str(failure.value)


def test_two_backends_cannot_be_compared(tmp_path: Path) -> None:
    segment, entry = (tmp_path / "index" / "a", tmp_path / "queries" / "3f" / "e")
    write_pictures(segment, ids("a", 2), np.eye(2), backend="jax")
    write_pictures(entry, ids("b", 2), np.eye(2))
    with pytest.raises(StageError, match=r"^segment a was computed on JAX, the entry e on TensorFlow: .*KERAS_BACKEND"):
        run(segment, entry, tmp_path / "out")
    write_pictures(entry, ids("b", 2), np.eye(2), backend="jax")
    assert run(segment, entry, tmp_path / "out").origin.backend == "jax"


def test_a_damaged_entry_is_named(segment: Path, entry: Path, tmp_path: Path) -> None:
    other = write_pictures(entry.parent / "other", ids("d", 2), np.ones((2, 10)))
    np.save(other / "vectors.npy", np.ones((3, 10), np.float32))
    with pytest.raises(StageError, match=r"^entry other: it has 3 vectors for 2 pictures; .* features-queries$"):
        run(segment, entry, tmp_path / "out")
    for file in ("vectors.npy", "images.parquet"):
        (other / file).write_bytes(b"damaged")
        with pytest.raises(StageError, match=f"^entry other: {file} is not a"):
            run(segment, entry, tmp_path / "out")


@pytest.mark.parametrize("where", ["segment", "entry"])
def test_vectors_that_are_not_finite(where: str, tmp_path: Path) -> None:
    bad, good = np.ones((3, 4)), np.ones((3, 4))
    bad[2, 0] = np.inf
    segment = write_pictures(tmp_path / "index" / "a", ids("a", 3), bad if where == "segment" else good)
    entry = write_pictures(tmp_path / "queries" / "3f" / "e", ids("b", 3), bad if where == "entry" else good)
    named = "picture a" if where == "segment" else "entry e: the vector of picture b"
    with pytest.raises(StageError, match=f"{named}0*2 has numbers that are NaN"):
        run(segment, entry, tmp_path / "out")


def test_a_broken_segment(entry: Path, tmp_path: Path, library: NDArray[np.float32]) -> None:
    broken = write_pictures(tmp_path / "index" / "a", ids("a", 90), library)
    points = broken / "vectors" / "part1.npy"
    np.save(points, np.ones((29, 10), np.float32))
    with pytest.raises(StageError, match=r"^part1\.npy does not have one vector for each .* --reprocess index$"):
        run(broken, entry, tmp_path / "out")
    points.unlink()
    with pytest.raises(StageError, match=r"^part1\.npy is missing"):
        run(broken, entry, tmp_path / "out")


def test_a_failed_segment_is_not_kept(entry: Path, tmp_path: Path, library: NDArray[np.float32]) -> None:
    broken = write_pictures(tmp_path / "index" / "a", ids("a", 90), library[:80])
    process = search.start(CPU)
    with pytest.raises(StageError):
        process(datum(broken, entry.parent, tmp_path / "out", "1234"))
    write_pictures(broken, ids("a", 90), library)
    process(datum(broken, entry.parent, tmp_path / "out", "1234"))
    assert (tmp_path / "out" / "trip" / "a.parquet").exists()
