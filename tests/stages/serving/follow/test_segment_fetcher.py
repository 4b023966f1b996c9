"""Segments brought from a real Pachyderm: the calls that each start makes, what is kept, and damage on the way."""

from __future__ import annotations

import errno
import io
import os
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import python_pachyderm
from numpy.typing import NDArray

from stages.datum.contract import StageError
from stages.datum.file_cache import FileCache
from stages.files import vector_files
from stages.serving.follow import segment_fetcher
from stages.serving.follow.pachyderm_client import (
    CommitFacts,
    FileFacts,
    PachydermAddress,
    PachydermClient,
    PachydermError,
    Unreachable,
)
from stages.serving.follow.segment_fetcher import SegmentFetcher
from stages.serving.search.mapped_segment import MappedSegment
from tests.servers import Localpachd
from tests.small_archives import tarred
from tests.stages.serving.memory import MemoryPeak, anonymous, resident_of
from tests.stages.serving.segments import PARTS, ids, write_segment

VECTORS = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
FILES = ("hashes.npy", "images.parquet", "index.json")


class Counted(PachydermClient):
    """Notes its calls."""

    def __init__(self, at: PachydermAddress) -> None:
        super().__init__(at)
        self.calls: list[str] = []

    def files(self, repo: str, commit: str, pattern: str) -> list[FileFacts]:
        self.calls.append(f"list {pattern}")
        return super().files(repo, commit, pattern)

    def read(self, repo: str, commit: str, path: str, offset: int = 0, most: int | None = None) -> Iterator[bytes]:
        self.calls.append(path)
        return super().read(repo, commit, path, offset, most)

    def archive(self, repo: str, commit: str, path: str) -> Generator[bytes]:
        self.calls.append(f"archive {path}")
        return super().archive(repo, commit, path)


@dataclass
class World:
    """A repo with segments, whose files lie in `root`, too, and a service that starts again and again."""

    server: Counted
    client: python_pachyderm.Client
    root: Path
    cache: FileCache
    repo: str = field(default_factory=lambda: f"index-{uuid.uuid4().hex}")

    @property
    def files(self) -> Path:
        """The kept ones."""
        return self.root.parent / "cache" / "files"

    def put(self, *below: str) -> CommitFacts:
        """Puts these files and directories in one commit, in place of what is there."""
        with self.client.commit(self.repo, "master") as commit:
            for each in below:
                self.client.delete_file(commit, f"/{each}{'/' if (self.root / each).is_dir() else ''}")
                paths = [self.root / each, *(self.root / each).rglob("*")]
                for path in sorted(path for path in paths if path.is_file()):
                    self.client.put_file_bytes(commit, f"/{path.relative_to(self.root)}", path.read_bytes())
        self.client.wait_commit(commit.id)
        return self.server.commit(self.repo, str(commit.id))

    def start(self, commit: CommitFacts, held: tuple[MappedSegment, ...] = ()) -> list[MappedSegment]:
        """The segments as a service has them that has these already. `calls` are then those that it made."""
        self.server.calls.clear()
        found = segment_fetcher.list_segments(self.server, commit)
        with self.cache.scratch() as scratch:
            return SegmentFetcher(self.server, self.cache, commit, found, scratch).opened(held)

    @property
    def calls(self) -> list[str]:
        """Those of the last start, without the one that lists the segments."""
        first, *others = self.server.calls
        assert first == "list /*/*"
        return others

    def buckets(self, commit: CommitFacts) -> dict[str, str]:
        """The hashes of the files of vectors, by their paths."""
        return {each.path: each.hash for each in self.server.files(self.repo, commit.id, "/*/vectors/*")}

    def together(self, commit: CommitFacts) -> list[Path]:
        """The files of kept vectors of each segment, whether they are there or not."""
        hashes = [each.together for each in segment_fetcher.list_segments(self.server, commit)]
        return [self.files / each[:2] / each for each in hashes]


@pytest.fixture
def world(localpachd: Localpachd, tmp_path: Path) -> Iterator[World]:
    server = Counted(PachydermAddress(localpachd.address))
    made = World(server, localpachd.client(), tmp_path / "index", FileCache(tmp_path / "cache"))
    made.client.create_repo(made.repo)
    write_segment(made.root / "0", ids("0", 12), VECTORS[:12])
    write_segment(made.root / "a", ids("a", 8), VECTORS[12:])
    yield made
    server.close()


def vectors(segments: list[MappedSegment]) -> NDArray[np.float32]:
    return np.concatenate([each.vectors for each in segments])


def changed(world: World, value: float = 7) -> NDArray[np.float32]:
    """Gives the second picture of segment 0 another vector, in one of its files; returns all vectors."""
    path = world.root / "0" / "vectors" / "part1.npy"
    content = np.load(path)
    content[0] = value
    np.save(path, content)
    expected = VECTORS.copy()
    expected[1] = value
    return expected


def test_a_first_start_brings_the_vectors_of_a_segment_with_one_call(world: World) -> None:
    found = world.start(world.put("0", "a"))
    assert [each.name for each in found] == ["0", "a"]
    assert [each.id(0) for each in found] == [ids("0", 1)[0], ids("a", 1)[0]]
    assert np.array_equal(vectors(found), VECTORS)
    every = [
        [*(f"{name}/{file}" for file in FILES), f"list /{name}/vectors/*", f"archive {name}/vectors"] for name in "0a"
    ]
    assert world.calls == every[0] + every[1]


def test_later_starts_bring_nothing_and_need_no_files_of_buckets(world: World) -> None:
    commit = world.put("0", "a")
    first = world.start(commit)
    world.cache.drop(world.buckets(commit).values())
    again = world.start(commit)
    assert world.calls == []
    assert np.array_equal(vectors(again), VECTORS)
    assert [each.key for each in again] == [each.key for each in first]


def test_of_a_changed_segment_only_the_changed_file_is_brought(world: World) -> None:
    before = world.start(world.put("0", "a"))
    expected = changed(world)
    after = world.start(world.put("0/vectors/part1.npy"))
    assert world.calls == ["list /0/vectors/*", "0/vectors/part1.npy"]
    assert np.array_equal(vectors(after), expected)
    assert np.array_equal(vectors(before), VECTORS)
    assert [one.key == other.key for one, other in zip(before, after, strict=True)] == [False, True]


def test_open_segments_are_taken_over_without_a_call_or_a_kept_file(world: World) -> None:
    before = world.start(world.put("0", "a"))
    expected = changed(world)
    commit = world.put("0/vectors")
    world.cache.drop(path.name for path in world.files.glob("*/*"))
    after = world.start(commit, tuple(before))
    assert {call.rpartition(" ")[2].strip("/")[0] for call in world.calls} == {"0"}
    assert after[1] is before[1] and after[0] is not before[0]
    assert np.array_equal(vectors(after), expected)
    assert [one is other for one, other in zip(world.start(commit, tuple(after)), after, strict=True)] == [True, True]
    assert world.calls == []


@pytest.mark.parametrize("file", ["images.parquet", "hashes.npy", "index.json", "vectors/part0.npy"])
def test_every_file_of_a_segment_changes_its_key_and_no_other(file: str, world: World) -> None:
    before = segment_fetcher.list_segments(world.server, world.put("0", "a"))
    path = world.root / "0" / file
    path.write_bytes(path.read_bytes() + b" ")
    after = segment_fetcher.list_segments(world.server, world.put(f"0/{file}"))
    assert [one.key == other.key for one, other in zip(before, after, strict=True)] == [False, True]
    own = file in ("images.parquet", "vectors/part0.npy")
    assert [one.together != other.together for one, other in zip(before, after, strict=True)] == [own, False]


def test_vectors_that_change_files_change_the_key(world: World) -> None:
    """The hash of their directory is the same: the table tells the names."""
    before = segment_fetcher.list_segments(world.server, world.put("0", "a"))
    directory = world.root / "0" / "vectors"
    (directory / "part2.npy").rename(directory / "part3.npy")
    after = segment_fetcher.list_segments(world.server, world.put("0"))
    assert before[0].vectors.hash == after[0].vectors.hash
    with pytest.raises(StageError, match=r"part2\.npy is missing next to its table"):
        world.start(world.put("0"))


@pytest.mark.parametrize("call", [0, 1 << 20])
def test_one_call_brings_all_files_where_it_takes_less_time(
    call: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most of them: the others travel again."""
    monkeypatch.setattr(segment_fetcher, "_CALL", call)
    commit = world.put("a")
    world.start(commit)
    buckets = world.buckets(commit)
    world.cache.drop(buckets[f"a/vectors/part{part}.npy"] for part in (0, 1))
    world.cache.drop(path.name for path in world.together(commit))
    assert np.array_equal(vectors(world.start(commit)), VECTORS[12:])
    singly = [f"a/vectors/part{part}.npy" for part in (0, 1)]
    assert world.calls == ["list /a/vectors/*", *(["archive a/vectors"] if call else singly)]


def test_where_both_do_not_fit_the_vectors_put_together_are_kept(world: World, tmp_path: Path) -> None:
    size = sum(path.stat().st_size for path in world.root.glob("*/vectors/*"))
    world.cache = FileCache(tmp_path / "cache", 2 * size - 1)
    commit = world.put("0", "a")
    world.start(commit)
    assert not {path.name for path in world.files.glob("*/*")} & {*world.buckets(commit).values()}
    assert all(path.is_file() for path in world.together(commit))
    assert np.array_equal(vectors(world.start(commit)), VECTORS)
    assert world.calls == []
    expected = changed(world)
    assert np.array_equal(vectors(world.start(world.put("0/vectors"))), expected)
    assert world.calls == ["list /0/vectors/*", "archive 0/vectors"]


@pytest.mark.parametrize("damage", ["empty", "cut", "zeros", "other", "another shape"])
def test_kept_vectors_that_were_damaged_are_put_together_again(damage: str, world: World) -> None:
    commit = world.put("0", "a")
    world.start(commit)
    path = world.together(commit)[0]
    content = path.read_bytes()
    other = io.BytesIO()
    np.save(other, np.zeros((3, 8), np.float32))
    path.write_bytes(
        {
            "empty": b"",
            "cut": content[:-1],
            "zeros": bytes(len(content)),
            "other": b"anything",
            "another shape": other.getvalue(),
        }[damage]
    )
    assert np.array_equal(vectors(world.start(commit)), VECTORS)
    assert world.calls == ["list /0/vectors/*"]
    assert path.read_bytes() == content


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "between members": lambda whole: whole[: 3 * 512],
    "within a header": lambda whole: whole[: 3 * 512 + 100],
    "within a member": lambda whole: whole[: 2 * 512 + 50],
    "other bytes": lambda whole: os.urandom(len(whole)),
    "other files": lambda _: tarred({"/etc/passwd": b"x", "../../a": b"y", "/0/vectors/part9.npy": b"z"}),
    "other sizes": lambda _: tarred({f"/0/vectors/part{part}.npy": b"short" for part in range(PARTS)}),
}


@pytest.mark.parametrize("damage", [*DAMAGES, "broken off"])
def test_an_archive_that_is_cut_off_or_foreign_is_told_and_nothing_of_it_is_kept(
    damage: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = world.put("0", "a")
    archive = PachydermClient.archive

    def damaged(server: PachydermClient, *arguments: Any) -> Generator[bytes]:
        whole = b"".join(archive(server, *arguments))
        yield DAMAGES[damage if damage in DAMAGES else "within a member"](whole)
        if damage == "broken off":
            raise Unreachable("Pachyderm does not answer")

    said = r"the server sent /0/vectors\S* of index-\w+ cut off: try again" if damage in DAMAGES else "does not answer"
    with monkeypatch.context() as patch:
        patch.setattr(PachydermClient, "archive", damaged)
        with pytest.raises(PachydermError, match=said):
            world.start(commit)
    contents = {path.read_bytes() for path in world.root.rglob("*") if path.is_file()}
    assert {path.read_bytes() for path in world.files.glob("*/*")} <= contents
    assert np.array_equal(vectors(world.start(commit)), VECTORS)


def test_a_full_disk_is_told_with_its_place_and_nothing_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = world.put("0", "a")

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(OSError, match="No space left on device") as caught:
            world.start(commit)
    assert caught.value.filename == str(world.files.parent)
    assert not any(path.exists() for path in world.together(commit))
    assert np.array_equal(vectors(world.start(commit)), VECTORS)


def test_a_missing_file_of_vectors_and_damaged_ones(world: World) -> None:
    path = world.root / "0" / "vectors" / "part1.npy"
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(StageError, match=r"part1\.npy is missing next to its table"):
        world.start(world.put("0", "a"))
    for damaged in (content[:-1], b"anything", b""):
        path.write_bytes(damaged)
        commit = world.put("0")
        with pytest.raises(StageError, match=r"part1\.npy is not a file of vectors"):
            world.start(commit)
        assert not world.together(commit)[0].exists()
    path.write_bytes(content)
    assert np.array_equal(vectors(world.start(world.put("0"))), VECTORS)


def test_a_segment_of_an_older_version(world: World) -> None:
    directory = world.root / "a" / "vectors"
    for path in sorted(directory.iterdir()):
        path.rename(directory.parent / "vectors.npy")
    directory.rmdir()
    with pytest.raises(StageError, match=r"segment a has no vectors: .*lookalike deploy --reprocess index"):
        world.start(world.put("0", "a"))


def test_vectors_are_put_together_without_holding_them_in_memory(world: World) -> None:
    """And they leave it when they are released."""
    many = np.random.default_rng(1).random((16_384, 1024), np.float32)
    write_segment(world.root / "f", ids("f", len(many)), many)
    commit = world.put("0", "a")
    world.start(commit)  # what is imported and kept for any segment
    commit = world.put("f")
    with MemoryPeak(anonymous) as peak:
        found = world.start(commit)
    assert peak.growth < 0.7 * many.nbytes  # a third is the largest file of a bucket
    vectors = found[-1].vectors
    assert isinstance(vectors, np.memmap)
    assert np.array_equal(vectors, many)
    assert resident_of(str(vectors.filename)) > many.nbytes / 2
    vector_files.release(vectors)
    assert resident_of(str(vectors.filename)) < many.nbytes / 8
    assert np.array_equal(vectors, many)
