"""The search stage as in production: a segment (its files pipes, as Pachyderm's lazy inputs are) and an entry."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stages import search, thumbnailfiles
from stages.contract import Datum, Input, StageError
from stages.sheetqueries import most_pictured, sheet_queries
from stages.sources import Source
from stages.tables.images import Images, read_images, write_images
from stages.tables.indexed import write_indexed
from stages.tables.neighbours import Neighbours, read_neighbours
from tests.stages.serving import segments

MODEL = "5eed" * 16
CPU = {"CUDA_VISIBLE_DEVICES": ""}


def write_pictures(
    directory: Path,
    ids: Sequence[str],
    vectors: NDArray[np.floating[Any]],
    model: str = MODEL,
    image_size: int = 96,
    fit: str = "pad",
) -> Path:
    """Vectors, written as float32, and their tables as index (a segment) and features-queries (an entry) write them."""
    directory.mkdir(parents=True, exist_ok=True)
    thumbnails = [b"jpeg of " + id.encode() for id in ids]
    images = Images(
        ids=ids,
        sources=[(Source(f"{id[:5]}.jpg", id), Source(f"copy of {id[:5]}.jpg", id)) for id in ids],
        thumbnail_sizes=[len(each) for each in thumbnails],
        hashes=[0] * len(ids),
        model=model,
        image_size=image_size,
        fit=fit,
        dimension=vectors.shape[1],
    )
    if directory.parent.name == "index":
        write_indexed(images, segments.write_thumbnails(directory, thumbnails), directory / "images.parquet")
    else:
        write_images(images, directory / "images.parquet")
        thumbnailfiles.write(directory / "images.thumbnails", thumbnails)
    np.save(directory / "vectors.npy", vectors.astype(np.float32))
    return directory


def ids(start: str, count: int) -> list[str]:
    return [f"{start}{row:0{64 - len(start)}x}" for row in range(count)]


def datum(segment: Path, entry: Path, out: Path, commit: str = "", asked: str = "") -> Datum:
    return Datum(
        {
            "index": Input("index", segment, segment.name, commit),
            "queries": Input("queries", entry, f"queries/{entry.name}", asked),
        },
        out,
    )


def run(segment: Path, entry: Path, out: Path, environment: Mapping[str, str] = CPU) -> Neighbours:
    search.start({**CPU, **environment})(datum(segment, entry, out))
    return read_neighbours(out / entry.name / f"{segment.name}.parquet")


class Pipes:
    """A lazy input: pipes that are filled only when first opened. Records the opened ones."""

    def __init__(self, files: Path, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.opened: list[str] = []
        self._threads = []
        for file in (each for each in files.rglob("*") if each.is_file()):
            name = file.relative_to(files).as_posix()
            (directory / name).parent.mkdir(exist_ok=True)
            os.mkfifo(directory / name)
            self._threads.append(threading.Thread(target=self._fill, args=(file, name), daemon=True))
            self._threads[-1].start()

    def _fill(self, file: Path, name: str) -> None:
        with (self.directory / name).open("wb") as pipe:
            self.opened.append(name)
            pipe.write(file.read_bytes())


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
    return write_pictures(tmp_path / "queries" / "trip", names, vectors)


def test_the_nearest_of_every_query(segment: Path, entry: Path, tmp_path: Path, library: NDArray[np.float32]) -> None:
    found = run(segment, entry, tmp_path / "out", {"K": "4"})
    assert (found.model, found.metric, found.k) == (MODEL, "euclidean", 4)
    queries = read_images(entry / "images.parquet").ids
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
    entry = write_pictures(tmp_path / "e", [ids("a", 90)[60]], library[5:6])
    found = run(segment, entry, tmp_path / "out", {"K": "2"})
    assert [row[:4] for row in found] == [
        (ids("a", 90)[60], 0, ids("a", 90)[60], 0.0),
        (ids("a", 90)[60], 1, ids("a", 90)[5], 0.0),
    ]


def test_a_picture_comes_before_others_with_its_vector(
    segment: Path, tmp_path: Path, library: NDArray[np.float32]
) -> None:
    entry = write_pictures(tmp_path / "e", [ids("a", 90)[49]], library[49:50])  # the last of twenty
    found = run(segment, entry, tmp_path / "out")
    assert list(found.ids) == [ids("a", 90)[row] for row in (49, 30, 31)]
    assert list(found.distances) == [0, 0, 0]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_bytes_do_not_depend_on_the_backend(metric: str, segment: Path, entry: Path, tmp_path: Path) -> None:
    for backend in ("faiss", "sklearn", "auto"):
        assert run(segment, entry, tmp_path / backend, {"METRIC": metric, "BACKEND": backend}).metric == metric
    assert len({(tmp_path / each / "trip" / "a.parquet").read_bytes() for each in ("faiss", "sklearn", "auto")}) == 1


def test_segments_merged_are_the_whole(entry: Path, tmp_path: Path, library: NDArray[np.float32]) -> None:
    names = [*ids("a", 45), *ids("b", 45)]
    write_pictures(tmp_path / "one" / "index" / "x", names, library)
    write_pictures(tmp_path / "two" / "index" / "a", names[:45], library[:45])
    write_pictures(tmp_path / "two" / "index" / "b", names[45:], library[45:])
    whole = run(tmp_path / "one" / "index" / "x", entry, tmp_path / "out", {"K": "6"})
    parts = [run(tmp_path / "two" / "index" / each, entry, tmp_path / "out", {"K": "6"}) for each in ("a", "b")]
    best: dict[str, list[tuple[float, bool, str]]] = {}
    for row in (row for part in parts for row in part):
        best.setdefault(row.query, []).append((row.distance, row.id != row.query, row.id))
    merged = [(query, match[0], match[2]) for query in sorted(best) for match in sorted(best[query])[:6]]
    assert merged == [(row.query, row.distance, row.id) for row in whole]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_segment_smaller_than_k(count: int, entry: Path, tmp_path: Path, library: NDArray[np.float32]) -> None:
    small = write_pictures(tmp_path / "index" / "s", ids("a", count), library[:count])
    found = run(small, entry, tmp_path / "out", {"K": "7"})
    assert len(found) == 5 * count
    assert found.k == 7


def test_a_segment_of_the_queries_alone(tmp_path: Path) -> None:
    for name in ("index/a", "queries/e"):
        write_pictures(tmp_path / name, ids("a", 2), np.eye(2))
    found = run(tmp_path / "index" / "a", tmp_path / "queries" / "e", tmp_path / "out")
    assert [(row.id[-1], row.rank, row.distance) for row in found] == [
        ("0", 0, 0.0),
        ("1", 1, np.float32(np.sqrt(2))),
        ("1", 0, 0.0),
        ("0", 1, np.float32(np.sqrt(2))),
    ]


def test_only_the_shown_queries_have_thumbnails(segment: Path, tmp_path: Path) -> None:
    k = 25
    names = ids("c", 130)
    entry = write_pictures(tmp_path / "queries" / "many", names, np.random.default_rng(1).normal(size=(130, 10)))
    found = run(segment, entry, tmp_path / "out", {"K": str(k)})
    drawn = set(sheet_queries("many", names, most_pictured(k)))
    assert len(drawn) == most_pictured(k) == 120
    assert {row.query for row in found if row.thumbnail is not None} == drawn
    assert {row.query for row in found if row.thumbnail is None} == set(names) - drawn


def test_pipes_are_read_once_and_the_segment_kept_for_the_next_entry(
    segment: Path, entry: Path, tmp_path: Path, library: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    spools = tmp_path / "tmp"
    spools.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spools))
    other = write_pictures(tmp_path / "queries" / "other", ids("d", 2), library[:2] + 0.5)
    process = search.start(CPU)
    pipes = Pipes(segment, tmp_path / "pfs" / "index" / "a")
    process(datum(pipes.directory, entry, tmp_path / "lazy", "1234"))
    process(datum(pipes.directory, other, tmp_path / "lazy", "1234"))
    shown = [f"thumbnails/part{number}.thumbnails" for number in range(segments.PARTS)]
    assert sorted(pipes.opened) == ["images.parquet", *shown, "vectors.npy"]
    assert list(spools.iterdir()) == []  # nothing would be left if this process were killed now
    for each in (entry, other):
        run(segment, each, tmp_path / "plain")
        name = f"{each.name}/a.parquet"
        assert (tmp_path / "lazy" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()


def test_thumbnails_of_other_parts_are_not_opened_and_may_be_damaged(
    segment: Path, tmp_path: Path, library: NDArray[np.float32]
) -> None:
    entry = write_pictures(tmp_path / "queries" / "one", ids("a", 4)[3:], library[3:4])
    pipes = Pipes(segment, tmp_path / "pfs" / "index" / "a")
    search.start({**CPU, "K": "1"})(datum(pipes.directory, entry, tmp_path / "lazy", "1234"))
    assert sorted(pipes.opened) == ["images.parquet", "thumbnails/part0.thumbnails", "vectors.npy"]
    for part in ("part1", "part2"):
        (segment / "thumbnails" / f"{part}.thumbnails").write_bytes(b"")
    (found,) = run(segment, entry, tmp_path / "plain", {"K": "1"})
    assert found.thumbnail == b"jpeg of " + ids("a", 4)[3].encode()
    with pytest.raises(StageError, match=r"part1\.thumbnails is not the file of thumbnails that its table describes"):
        run(segment, entry, tmp_path / "more", {"K": "40"})


def test_an_entry_is_read_once_and_kept_for_the_next_segment(
    segment: Path, entry: Path, tmp_path: Path, library: NDArray[np.float32]
) -> None:
    second = write_pictures(tmp_path / "index" / "b", ids("b", 90), library + 1)
    process = search.start(CPU)
    pipes = Pipes(entry, tmp_path / "pfs" / "queries" / "trip")
    for each in (segment, second):
        process(datum(each, pipes.directory, tmp_path / "lazy", "1234", "c0ffee"))
        run(each, entry, tmp_path / "plain")
        name = f"trip/{each.name}.parquet"
        assert (tmp_path / "lazy" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    assert sorted(pipes.opened) == ["images.parquet", "vectors.npy"]

    other = write_pictures(tmp_path / "again" / "trip", ids("e", 2), library[:2])
    process(datum(second, other, tmp_path / "lazy", "1234", "decaf"))  # the entry at another commit
    assert set(read_neighbours(tmp_path / "lazy" / "trip" / "b.parquet").queries) == set(ids("e", 2))


def test_another_commit_or_path_is_another_segment(
    segment: Path, entry: Path, tmp_path: Path, library: NDArray[np.float32]
) -> None:
    process = search.start(CPU)
    process(datum(segment, entry, tmp_path / "out", "1234"))
    before = (tmp_path / "out" / "trip" / "a.parquet").read_bytes()
    write_pictures(segment, ids("a", 90), library + 1)
    process(datum(segment, entry, tmp_path / "out", "5678"))
    assert (tmp_path / "out" / "trip" / "a.parquet").read_bytes() != before
    second = write_pictures(tmp_path / "index" / "b", ids("b", 90), library)
    process(datum(second, entry, tmp_path / "out", "5678"))
    assert read_neighbours(tmp_path / "out" / "trip" / "b.parquet").ids[0].startswith("b")


def test_plain_directories_are_never_reused(
    segment: Path, entry: Path, tmp_path: Path, library: NDArray[np.float32]
) -> None:
    process = search.start(CPU)
    process(datum(segment, entry, tmp_path / "out"))
    before = (tmp_path / "out" / "trip" / "a.parquet").read_bytes()
    shutil.rmtree(segment)  # written over, its files would change under a segment that is kept, too
    write_pictures(segment, ids("a", 90), library + 1)
    process(datum(segment, entry, tmp_path / "out"))
    assert (tmp_path / "out" / "trip" / "a.parquet").read_bytes() != before


@pytest.mark.parametrize("table", [True, False])
def test_an_entry_without_pictures_gives_no_output(table: bool, segment: Path, tmp_path: Path) -> None:
    entry = write_pictures(tmp_path / "queries" / "none", [], np.empty((0, 10)))
    if not table:
        (entry / "images.parquet").unlink()
    (entry / "rejected.jsonl").write_text('{"reason": "not a picture"}\n')
    search.start(CPU)(datum(segment, entry, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("other", [{"model": "beef" * 16}, {"image_size": 160}, {"fit": "crop"}])
def test_two_models_or_sizes_cannot_be_compared(other: dict[str, Any], segment: Path, tmp_path: Path) -> None:
    entry = write_pictures(tmp_path / "queries" / "e", ids("b", 2), np.zeros((2, 10)), **other)
    with pytest.raises(
        StageError, match="would be meaningless. Set the same IMAGE_SIZE and FIT in the specs"
    ) as failure:
        run(segment, entry, tmp_path / "out")
    assert MODEL in str(failure.value)
    assert str(next(iter(other.values()))) in str(failure.value)


def test_another_dimension_under_one_model(segment: Path, tmp_path: Path) -> None:
    entry = write_pictures(tmp_path / "queries" / "e", ids("b", 2), np.zeros((2, 9)))
    with pytest.raises(StageError, match="10 dimensions.*9 dimensions"):
        run(segment, entry, tmp_path / "out")


@pytest.mark.parametrize("where", ["segment", "entry"])
def test_vectors_that_are_not_finite(where: str, tmp_path: Path) -> None:
    bad, good = np.ones((3, 4)), np.ones((3, 4))
    bad[2, 0] = np.inf
    segment = write_pictures(tmp_path / "index" / "a", ids("a", 3), bad if where == "segment" else good)
    entry = write_pictures(tmp_path / "queries" / "e", ids("b", 3), bad if where == "entry" else good)
    with pytest.raises(StageError, match=f"picture {'a' if where == 'segment' else 'b'}0*2 has numbers that are NaN"):
        run(segment, entry, tmp_path / "out")


def test_a_broken_segment(entry: Path, tmp_path: Path, library: NDArray[np.float32]) -> None:
    broken = write_pictures(tmp_path / "index" / "a", ids("a", 90), library[:80])
    with pytest.raises(StageError, match="80 vectors for 90 pictures"):
        run(broken, entry, tmp_path / "out")
    (broken / "vectors.npy").unlink()
    with pytest.raises(StageError, match=r"segment a has no vectors\.npy"):
        run(broken, entry, tmp_path / "out")


def test_a_failed_segment_is_not_kept(entry: Path, tmp_path: Path, library: NDArray[np.float32]) -> None:
    broken = write_pictures(tmp_path / "index" / "a", ids("a", 90), library[:80])
    process = search.start(CPU)
    with pytest.raises(StageError):
        process(datum(broken, entry, tmp_path / "out", "1234"))
    write_pictures(broken, ids("a", 90), library)
    process(datum(broken, entry, tmp_path / "out", "1234"))
    assert (tmp_path / "out" / "trip" / "a.parquet").exists()


def test_runs_as_a_program(segment: Path, entry: Path, tmp_path: Path) -> None:
    out = tmp_path / "program"
    command = [sys.executable, "-m", "stages.search", "--out", str(out)]
    command += ["--input", f"index={segment}", "--input", f"queries={entry}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **CPU})
    assert "search: 5 queries of trip in 90 of a" in done.stdout
    run(segment, entry, tmp_path / "process")
    written = [(each / "trip" / "a.parquet").read_bytes() for each in (out, tmp_path / "process")]
    assert written[0] == written[1]
