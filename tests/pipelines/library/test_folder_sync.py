"""A folder compared with the library and mirrored in it: blocks, other people's pictures, and what is read for it."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.library import folder_sync, ingest, picture_sources
from pipelines.library.folder_sync import FolderWatcher
from pipelines.library.ingest import IngestResult
from pipelines.library.picture_hashes import PictureHashes
from tests.pipelines.counted_calls import CountedCalls, counting
from tests.pipelines.library import picture_contents
from tests.pipelines.library.picture_contents import ODD

JPEG = b"\xff\xd8\xff"
"""The beginning of a picture, whatever its name is."""

pytestmark = pytest.mark.late_alone


class Mirror:
    """A library, and a folder that is synced with it."""

    def __init__(self, connection: Connection, folder: Path, cache: Path) -> None:
        self.connection = connection
        self.folder = folder
        self.cache = cache
        self.digests = PictureHashes(cache)
        self.most_single: int | None = None

    def write(self, contents: dict[str, bytes]) -> None:
        for name, content in contents.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def compare(self) -> folder_sync.FolderDifference:
        return folder_sync.compare(self.connection, self.folder, self.digests)

    def sync(self) -> IngestResult:
        return ingest.mirror(self.connection, self.compare(), most_single=self.most_single)

    def library(self) -> dict[str, bytes]:
        return picture_contents.library(self.connection)

    def on_disk(self) -> dict[str, bytes]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {f"{self.folder.name}/{path.relative_to(self.folder)}": path.read_bytes() for path in files}


@pytest.fixture
def mirror(connection: Connection, tmp_path: Path, small_blocks: None) -> Mirror:
    (tmp_path / "photos").mkdir()
    for repo in ("images", "masks"):
        connection.client.create_repo(repo, project_name=connection.project)
    return Mirror(connection, tmp_path / "photos", tmp_path / "cache" / "pictures.sqlite")


@pytest.fixture
def counted(mirror: Mirror) -> Iterator[CountedCalls]:
    """Counts what the mirror reads from now on."""
    with counting(mirror.connection) as (mirror.connection, counted):
        yield counted


def test_random_changes_in_blocks(mirror: Mirror, tmp_path: Path) -> None:
    """Other pictures stay."""
    (tmp_path / "others").mkdir()
    for number in range(45):
        (tmp_path / "others" / f"{number}.jpg").write_bytes(f"other {number}".encode())
    ingest.add(mirror.connection, picture_sources.find([tmp_path / "others"]).sources, most_single=0)
    mirror.most_single = 0
    others, lot = mirror.library(), random.Random(7)
    for step, (new, gone) in enumerate([(70, 0), (50, 10), (10, 69), (30, 5)]):
        kept = sorted(mirror.folder.glob("*.jpg"))
        for path in lot.sample(kept, gone):
            path.unlink()
        for path in lot.sample(kept, len(kept) // 9):
            if path.exists():
                path.write_bytes(f"changed in {step}".encode())
        mirror.write({f"{step} {number}.jpg": f"{step} {number}".encode() for number in range(new)})
        mirror.sync()
        assert mirror.library() == others | mirror.on_disk()
        assert not mirror.compare()


def test_blocks_and_files_that_did_not_change_are_not_read_again(mirror: Mirror, counted: CountedCalls) -> None:
    mirror.most_single = 0
    mirror.write({f"{number}.jpg": b"%d" % number for number in range(90)})
    mirror.sync()
    for expected in (4, 1):  # the masks, and the beginnings of three blocks
        counted.reads = 0
        assert mirror.compare().unchanged == 90
        assert counted.reads == expected
    mirror.digests = PictureHashes(mirror.cache)  # another process
    counted.reads = 0
    assert mirror.compare().unchanged == 90
    assert counted.reads == 1
    mirror.write({"7.jpg": b"changed"})
    mirror.most_single = 1
    mirror.write({"single.jpg": b"one"})
    mirror.sync()
    counted.reads = 0
    assert mirror.compare().unchanged == 91
    assert counted.reads == 2  # the masks, and the beginning of a block of two


def test_a_renamed_file_is_not_uploaded_again(mirror: Mirror, counted: CountedCalls) -> None:
    mirror.write({"a.jpg": b"a" * 100, "b.zip": b"PK\3\4" + b"b" * 100, "c.jpg": b"c"})
    mirror.sync()
    assert counted.sent == 205
    (mirror.folder / "a.jpg").rename(mirror.folder / "new.jpg")
    (mirror.folder / "b.zip").rename(mirror.folder / "new.zip")
    mirror.write({"copy.jpg": b"c", "c.jpg": b"changed"})
    counted.sent = 0
    different = mirror.compare()
    Repository(mirror.connection, "images").write([PutFile("/photos%2Fa.jpg", b"of somebody else")])
    counted.sent = 0
    ingest.mirror(mirror.connection, different)
    assert counted.sent == len(b"changed")
    assert mirror.library() == mirror.on_disk()


def test_a_cache_that_cannot_be_used_is_none(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "no database").write_text("not one of SQLite's, but long enough to be taken for one" * 100)
    mirror.write({"a.jpg": b"a"})
    mirror.sync()
    for place in (tmp_path / "no database", tmp_path / "no database" / "below"):
        mirror.digests = PictureHashes(place)
        assert mirror.compare().unchanged == 1


def test_pictures_put_by_other_means_are_found(mirror: Mirror) -> None:
    """In a directory, as `pachctl put file -r` puts them."""
    repo = Repository(mirror.connection, "images")
    repo.write([PutFile("/photos/a.jpg", b"a"), PutFile("/photos/b.jpg", b"b"), PutFile("/photos/gone.jpg", b"c")])
    mirror.write({"a.jpg": b"a", "b.jpg": b"changed"})
    different = mirror.compare()
    assert (different.added, [each.name for each in different.changed]) == ([], ["photos/b.jpg"])
    assert (different.removed, different.unchanged) == (["photos/gone.jpg"], 1)
    mirror.sync()
    assert mirror.library() == mirror.on_disk()


def test_what_others_put_while_it_is_compared_stays(mirror: Mirror) -> None:
    mirror.write({"a.jpg": b"a", "b.jpg": b"b"})
    mirror.sync()
    (mirror.folder / "b.jpg").unlink()
    mirror.write({"c.jpg": b"c"})
    different = mirror.compare()
    Repository(mirror.connection, "images").write([PutFile("/photos%2Fnew.jpg", b"new"), PutFile("/other.jpg", b"o")])
    ingest.remove(mirror.connection, ["photos/b.jpg"])
    ingest.mirror(mirror.connection, different)
    assert mirror.library() == mirror.on_disk() | {"photos/new.jpg": b"new", "other.jpg": b"o"}


def test_unusual_names_are_mirrored(mirror: Mirror) -> None:
    mirror.write({name: JPEG + name.encode("utf-8", "surrogateescape") for name in ODD})
    assert mirror.sync().files == len(ODD)
    assert mirror.library() == mirror.on_disk()
    assert mirror.compare().unchanged == len(ODD)
    for name in ODD[1:]:
        (mirror.folder / name).unlink()
    mirror.sync()
    assert mirror.library() == mirror.on_disk()


def test_a_file_in_the_place_of_a_folder_and_the_reverse(mirror: Mirror) -> None:
    mirror.write({"x": JPEG + b"file", "y/a": JPEG + b"below", "z": JPEG})
    mirror.sync()
    (mirror.folder / "x").unlink()
    (mirror.folder / "y" / "a").unlink()
    (mirror.folder / "y").rmdir()
    mirror.write({"x/a": JPEG + b"below", "y": JPEG + b"file"})
    mirror.sync()
    assert mirror.library() == mirror.on_disk()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b", "deep/c"):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "folder"


@pytest.fixture
def watch(folder: Path) -> FolderWatcher:
    """A watch that has synced the folder."""
    watch = FolderWatcher(folder)
    assert not watch.look()  # nothing is known to be at rest
    assert watch.look()
    assert watch.is_new
    watch.taken()
    assert not watch.look()
    return watch


def test_a_change_counts_when_it_is_at_rest(watch: FolderWatcher, folder: Path) -> None:
    for content in ("half", "half written", "all of it"):
        (folder / "a").write_text(content)
        (folder / "new").write_text(content)
        assert not watch.look()
        assert watch.restless == {folder / "a", folder / "new"}
    assert watch.look()
    assert not watch.restless
    watch.taken()
    assert not watch.look()


def test_a_file_that_always_changes_keeps_no_other_waiting(watch: FolderWatcher, folder: Path) -> None:
    (folder / "b").unlink()
    (folder / "new").write_text("new")
    watch.look()
    for number in range(3):
        (folder / "a").write_text(f"longer than before {number}" + "!" * number)
        assert watch.look() is (number == 0)
        assert watch.restless == {folder / "a"}
        assert not watch.filling
        watch.taken()
    assert watch.look()


def test_what_is_missing_waits_until_no_more_files_come(watch: FolderWatcher, folder: Path) -> None:
    """As while a backup is copied back."""
    shutil.rmtree(folder)
    folder.mkdir()
    watch.look()
    for name in ("a", "b"):
        (folder / name).write_text(name)
        watch.look()
        assert watch.filling
        watch.taken()
    assert watch.look()
    assert not watch.filling
    watch.taken()
    assert not watch.look()


def test_a_file_in_anothers_place_is_a_change(watch: FolderWatcher, folder: Path) -> None:
    """Even if its name, size and date are the same."""
    (folder / "other").write_text("x")
    os.utime(folder / "other", ns=((folder / "a").stat().st_mtime_ns,) * 2)
    (folder / "other").replace(folder / "a")
    watch.look()
    assert watch.look()


def test_what_operating_systems_leave_is_not_looked_at(watch: FolderWatcher, folder: Path) -> None:
    (folder / ".DS_Store").write_text("x")
    (folder / "__MACOSX").mkdir()
    (folder / "__MACOSX" / "a").write_text("x")
    watch.look()
    assert not watch.look()
