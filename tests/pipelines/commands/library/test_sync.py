"""`lookalike sync` as people type it: what is put, replaced and removed, what is refused, and the watch."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.client.server.connection import Connection
from pipelines.library.datasets.samples import library_crops
from stages.backbone.photographs import open_photograph
from tests.command import Command, next_line
from tests.pipelines.library.picture_contents import library

pytestmark = [pytest.mark.late_alone, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def trip(command: Command) -> Path:
    """A folder with three pictures, one of them in a folder of its own."""
    folder = command.directory / "trip"
    (folder / "late").mkdir(parents=True)
    for name, crop in zip(("a", "b", "late/c"), library_crops(open_photograph("cat"), "cat", 0), strict=False):
        crop.save(folder / f"{name}.png")
    return folder


@pytest.fixture
def repo(as_user: Connection) -> Connection:
    """The user's library with the repo of pictures only: nothing is computed."""
    for repo in ("images", "masks"):
        as_user.client.create_repo(repo, project_name=as_user.project)
    return as_user


def said(typed: str) -> list[str]:
    """The lines of a sync, without the one about the server and the commit's id."""
    lines = (line.partition(": commit ")[0] for line in typed.splitlines())
    return [line for line in lines if not line.startswith(("writing to ", "its jobs are running"))]


def sync(command: Command, *arguments: str | Path) -> list[str]:
    return said(command.says("sync", *arguments, "--no-wait"))


def test_a_folder_is_mirrored_by_content_in_one_commit(repo: Connection, command: Command, trip: Path) -> None:
    (command.directory / "other.png").write_bytes(b"of somebody else")
    (command.directory / "tripod.png").write_bytes(b"of another name")
    command.says("add", "other.png", "tripod.png", "--no-wait")
    assert sync(command, "trip") == ["synced trip: 3 added, 0 changed, 0 removed, 0 unchanged"]
    assert set(library(repo)) == {
        "other.png",
        "tripod.png",
        "trip/a.png",
        "trip/b.png",
        "trip/late/c.png",
    }

    for path in trip.rglob("*.png"):
        os.utime(path, (0, 0))
    assert sync(command, trip) == ["trip: nothing to change, 3 unchanged"]

    before = len(list(repo.client.list_commit("images", project_name=repo.project)))
    (trip / "a.png").write_bytes((trip / "b.png").read_bytes())
    (trip / "b.png").rename(trip / "moved.png")
    (trip / "new.png").write_bytes(b"new")
    shutil.rmtree(trip / "late")
    changes = ["would add trip/moved.png", "would add trip/new.png", "would change trip/a.png"]
    changes += ["would remove trip/b.png", "would remove trip/late/c.png"]
    assert sync(command, "trip/", "--dry-run") == [*changes, "trip: would add 2, change 1 and remove 2; 0 unchanged"]
    told = json.loads(command.run("sync", "trip", "--dry-run", "--json").stdout)
    assert told == {
        "commit": None,
        "added": ["trip/moved.png", "trip/new.png"],
        "changed": ["trip/a.png"],
        "removed": ["trip/b.png", "trip/late/c.png"],
        "unchanged": 0,
        "skipped": [],
        "unreadable": {},
    }
    assert "trip/b.png" in library(repo)
    assert sync(command, "trip") == ["synced trip: 2 added, 1 changed, 2 removed, 0 unchanged"]
    assert len(list(repo.client.list_commit("images", project_name=repo.project))) == before + 1
    kept = {"other.png": b"of somebody else", "tripod.png": b"of another name"}
    assert library(repo) == {f"trip/{each.name}": each.read_bytes() for each in trip.iterdir()} | kept
    told = json.loads(command.run("sync", "trip", "--json").stdout)
    assert (told["commit"], told["unchanged"], told["added"]) == (None, 3, [])
    assert sync(command, "trip", "-n") == ["trip: would add 0, change 0 and remove 0; 3 unchanged"]


@pytest.mark.late_alone(False)
def test_only_what_changed_is_computed(
    as_user: Connection, preprocessing: Connection, command: Command, trip: Path
) -> None:
    assert "preprocess: success, 3 of 3 datums" in command.says("sync", "-v", "trip")
    (trip / "a.png").rename(trip / "d.png")
    (trip / "b.png").write_bytes((trip / "late" / "c.png").read_bytes())
    (row,) = (
        line.split() for line in command.says("sync", "-v", "trip").splitlines() if line.startswith("preprocess ")
    )
    assert row[:5] == ["preprocess", "success", "2", "1", "0"]
    (trip / "b.png").write_bytes(b"")
    assert "1 file rejected:\n  images: trip/b.png: the file is empty\n" in command.says("sync", "trip")


def test_an_empty_or_missing_folder_removes_nothing(repo: Connection, command: Command, trip: Path) -> None:
    sync(command, "trip")
    before = library(repo)
    kept = trip.rename(command.directory / "kept")
    assert command.fails("sync", "trip") == "trip: not found"
    trip.mkdir()
    why = "trip is empty, but the library has 3 pictures of it: is its disk mounted?"
    for arguments in ([], ["--dry-run"]):
        refused = command.fails("sync", "trip", *arguments)
        assert refused == f"{why} Nothing was changed; --allow-empty removes them"
    (trip / "x.png").write_bytes(b"x")
    assert "trip has none of the 3 pictures called trip/… in the library: is it another folder?" in command.fails(
        "sync", "trip"
    )
    assert command.fails("sync", kept / "a.png").endswith("a.png is not a directory")
    assert command.run("sync", "").returncode == command.run("sync", "trip", "--watch", "-n").returncode == 2
    assert library(repo) == before

    (trip / "x.png").write_bytes((kept / "a.png").read_bytes())  # all renamed, but they are the same pictures
    assert sync(command, "trip") == ["synced trip: 1 added, 0 changed, 3 removed, 0 unchanged"]
    (trip / "x.png").unlink()
    assert sync(command, "trip", "--allow-empty") == ["synced trip: 0 added, 0 changed, 1 removed, 0 unchanged"]
    assert library(repo) == {}


def test_an_unreadable_file_is_named_and_stays_in_the_library(repo: Connection, command: Command, trip: Path) -> None:
    sync(command, "trip")
    before = library(repo)
    (trip / "a.png").unlink()
    (trip / "a.png").symlink_to("/proc/self/mem")  # reading its beginning is an error, for root, too
    (trip / "late" / "c.png").unlink()
    (trip / "late" / "c.png").symlink_to("nowhere")
    (trip / "b.png").unlink()
    (trip / "new.png").write_bytes(b"new")
    done = command.run("sync", "trip", "--no-wait")
    assert (done.returncode, done.stderr) == (
        1, "lookalike: 1 file could not be read: the library keeps its pictures of them\n"
    )  # fmt: skip
    assert said(done.stdout) == [
        "skipped trip/late/c.png: a broken link",
        "left out trip/a.png: Input/output error",
        "synced trip: 1 added, 0 changed, 1 removed, 0 unchanged",
    ]
    before.pop("trip/b.png")
    assert library(repo) == before | {"trip/new.png": b"new"}


def test_syncs_and_adds_at_once_lose_nothing(repo: Connection, command: Command) -> None:
    folders = [command.directory / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        for number in range(30):
            (folder / f"{number}.png").write_bytes(f"{folder.name} {number}".encode())
    command.says("add", *folders, "--no-wait")
    expected: dict[str, bytes] = {}
    for folder in folders:
        for number in range(10):
            (folder / f"{number}.png").rename(folder / f"new {number}.png")
        expected |= {f"{folder.name}/{each.name}": each.read_bytes() for each in folder.iterdir()}
    for process in [command.start("sync", "--no-wait", "one"), command.start("add", "--no-wait", "two")]:
        out, complained = process.communicate(timeout=100)
        assert (process.returncode, complained) == (0, ""), out
    found = library(repo)
    assert {name: found[name] for name in expected} == expected
    assert set(found) - set(expected) == {f"two/{number}.png" for number in range(10)}


@pytest.fixture
def watching(repo: Connection, command: Command, trip: Path) -> Iterator["subprocess.Popen[str]"]:
    """A watch of the folder, which has synced it once."""
    process = command.start("sync", "trip", "--watch", "--interval", "0.1", "--no-wait", interruptible=True)
    try:
        assert until(process, "synced ") == "synced trip: 3 added, 0 changed, 0 removed, 0 unchanged"
        yield process
    finally:
        process.kill()
        process.communicate()


def until(process: "subprocess.Popen[str]", beginning: str) -> str:
    """The next line that begins so, without the commit."""
    return next_line(process, beginning).partition(": commit ")[0]


def test_a_watch_takes_every_change_until_ctrl_c(
    repo: Connection, watching: "subprocess.Popen[str]", command: Command, trip: Path
) -> None:
    (trip / "new.png").write_bytes(b"new")
    assert until(watching, "synced ") == "synced trip: 1 added, 0 changed, 0 removed, 3 unchanged"
    (trip / "new.png").write_bytes(b"changed")
    (trip / "a.png").touch()
    assert until(watching, "synced ") == "synced trip: 0 added, 1 changed, 0 removed, 3 unchanged"
    (trip / "new.png").unlink()
    assert until(watching, "synced ") == "synced trip: 0 added, 0 changed, 1 removed, 3 unchanged"
    until(watching, "its jobs are running")
    watching.send_signal(signal.SIGINT)
    _, complained = watching.communicate(timeout=60)
    assert (watching.returncode, complained) == (130, "lookalike: no longer watching trip\n")
    assert library(repo) == {f"trip/{name}": (trip / path).read_bytes() for name, path in NAMES.items()}


NAMES = {"a.png": "a.png", "b.png": "b.png", "late/c.png": "late/c.png"}


def test_a_watch_outlasts_a_disk_that_is_not_there(
    repo: Connection, watching: "subprocess.Popen[str]", command: Command, trip: Path
) -> None:
    assert watching.stderr is not None
    gone = trip.rename(command.directory / "gone")
    assert watching.stderr.readline() == "lookalike: trip: not found\n"
    trip.mkdir()
    assert watching.stderr.readline().startswith("lookalike: trip is empty, but the library has 3 pictures of it")
    trip.rmdir()
    gone.rename(trip)
    (trip / "b.png").unlink()
    assert until(watching, "synced ") == "synced trip: 0 added, 0 changed, 1 removed, 2 unchanged"
    assert set(library(repo)) == {"trip/a.png", "trip/late/c.png"}
