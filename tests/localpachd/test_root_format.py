"""A start never destroys: what it refuses, what it says, and that all is still there."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from localpachd import root_format
from localpachd.database import FORMAT
from localpachd.errors import FailedPrecondition
from localpachd.maintenance import main
from localpachd.server import Server
from localpachd.server_options import ServerOptions
from localpachd.storage.chunk_store import SMALL
from tests.servers import StartPachd

FILES = {"/small": b"kept", "/big": b"kept" * SMALL}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, start_shared_pachd: StartPachd) -> Path:
    """The root of a server that was stopped, with one repo of two files."""
    root = tmp_path_factory.mktemp("filled") / "root"
    server = start_shared_pachd(root)
    client = server.client()
    client.create_repo("in")
    with client.modify_file_client(("in", "master")) as writer:
        for path, data in FILES.items():
            writer.put_file_from_bytes(path, data)
    server.stop()
    return root


@pytest.fixture
def root(filled: Path, tmp_path: Path) -> Path:
    """A root of the test's own, like that."""
    return Path(shutil.copytree(filled, tmp_path / "root"))


def change(root: Path, *statements: str) -> None:
    with closing(sqlite3.connect(root / "pachd.sqlite", isolation_level=None)) as conn:
        for each in statements:
            conn.execute(each)


def remove(root: Path) -> None:
    for path in root.glob("pachd.sqlite*"):
        path.unlink()


def replace_with_other(root: Path) -> None:
    with Server(ServerOptions(root.with_name("other"), port=0)):
        pass
    remove(root)
    shutil.copy(root.with_name("other") / "pachd.sqlite", root / "pachd.sqlite")


def make_empty(root: Path) -> None:
    remove(root)
    (root / "pachd.sqlite").touch()


def make_foreign(root: Path) -> None:
    remove(root)
    change(root, "CREATE TABLE photographs (name TEXT)")


def make_older(root: Path) -> None:
    change(root, "DELETE FROM commits", "UPDATE sqlite_sequence SET seq = 0 WHERE name = 'commits'")


def damage(root: Path) -> None:
    with (root / "pachd.sqlite").open("r+b") as file:
        (size,) = (file.seek(0, 2),)
        for page in range(4096 * 4, size, 4096):
            file.seek(page)
            file.write(b"\xff" * 64)


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (remove, "its database pachd.sqlite is missing"),
    "renamed": (lambda root: (root / "pachd.sqlite").rename(root / "pachd.old"), "pachd.sqlite is missing"),
    "empty": (make_empty, "its database pachd.sqlite is empty"),
    "foreign": (make_foreign, "is not a database of localpachd"),
    "newer": (lambda root: change(root, f"PRAGMA user_version={FORMAT + 1}"), "use the newer version"),
    "another's": (replace_with_other, "is not the database of the chunks beside it"),
    "older": (make_older, "is older than the chunks beside it (highest numbers: commits 0 instead of"),
    "without marker": (lambda root: (root / root_format.MARKER).unlink(), "fsck --adopt"),
    "with a damaged marker": (lambda root: (root / root_format.MARKER).write_text("{"), "is damaged"),
    "without small chunks": (lambda root: (root / "chunks/small.sqlite").unlink(), "small.sqlite is missing"),
    "damaged": (damage, "pachd.sqlite cannot be read: it is damaged"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_start_that_could_destroy_is_refused(root: Path, case: str) -> None:
    spoil, text = REFUSED[case]
    spoil(root)
    before = {path: path.read_bytes() for path in (root / "chunks").glob("??/*")}
    assert before
    with pytest.raises(FailedPrecondition) as refused:
        Server(ServerOptions(root, port=0))
    assert text in str(refused.value)
    assert {path: path.read_bytes() for path in (root / "chunks").glob("??/*")} == before
    assert list((root / "chunks/trash").iterdir()) == []


def test_a_newer_marker_is_refused(root: Path) -> None:
    marker = root / root_format.MARKER
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "version": FORMAT + 1}))
    with pytest.raises(FailedPrecondition, match=f"has the format {FORMAT + 1}"):
        Server(ServerOptions(root, port=0))


def test_the_right_database_put_back_serves_again(root: Path, start_pachd: StartPachd) -> None:
    kept = root.with_name("kept")
    shutil.copy(root / "pachd.sqlite", kept)
    remove(root)
    with pytest.raises(FailedPrecondition):
        Server(ServerOptions(root, port=0))
    kept.rename(root / "pachd.sqlite")
    served(root, start_pachd)


def test_a_database_can_be_adopted(root: Path, start_pachd: StartPachd, capsys: pytest.CaptureFixture[str]) -> None:
    (root / root_format.MARKER).unlink()
    assert main(["fsck", "--verify", "--adopt", str(root)]) == 0
    assert "no problems" in capsys.readouterr().out
    served(root, start_pachd)


def test_a_database_whose_content_is_lost_in_part_is_adopted_only_despite_the_damage(
    root: Path, start_pachd: StartPachd, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / root_format.MARKER).unlink()
    (path,) = (root / "chunks").glob("??/*")
    path.unlink()
    assert main(["fsck", "--adopt", str(root)]) == 1
    found = capsys.readouterr()
    assert "/big cannot be read" in found.out
    assert "1 problem; not adopted: if these files are lost" in found.err
    with pytest.raises(FailedPrecondition, match="fsck --adopt"):
        Server(ServerOptions(root, port=0))
    assert main(["fsck", "--adopt", "--despite-damage", str(root)]) == 1
    assert capsys.readouterr().err.endswith("1 problem; adopted\n")
    client = start_pachd(root).client()
    assert client.get_file(("in", "master"), "/small").read() == FILES["/small"]
    assert main(["fsck", "--despite-damage", str(root)]) == 1
    assert "belongs to --adopt" in capsys.readouterr().err


def served(root: Path, start_pachd: StartPachd) -> None:
    server = start_pachd(root)
    client = server.client()
    assert {path: client.get_file(("in", "master"), path).read() for path in FILES} == FILES
    assert list(client.fsck()) == []
    server.stop()
