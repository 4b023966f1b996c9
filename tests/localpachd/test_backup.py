"""Backups: made while a server runs, verified, restored elsewhere; damage is found in each."""

import random
import shutil
import sqlite3
import tarfile
import threading
from contextlib import closing
from pathlib import Path

import grpc
import pytest
import python_pachyderm

from localpachd.errors import FailedPrecondition
from localpachd.maintenance import main
from localpachd.server import Server
from localpachd.server_options import ServerOptions
from tests.servers import Localpachd, StartPachd

SIZES = (10, 5_000, 100_000, 9 << 20)


@pytest.fixture
def server(tmp_path: Path, start_pachd: StartPachd) -> Localpachd:
    return filled(start_pachd(tmp_path / "root"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, start_shared_pachd: StartPachd) -> Path:
    """A backup of such a server."""
    place = tmp_path_factory.mktemp("made")
    filled(start_shared_pachd(place / "root"))
    assert main(["backup", str(place / "root"), str(place / "kept")]) == 0
    return place / "kept"


@pytest.fixture
def kept(made: Path, tmp_path: Path) -> Path:
    """A backup of the test's own, like that."""
    return Path(shutil.copytree(made, tmp_path / "kept"))


def filled(server: Localpachd) -> Localpachd:
    client = server.client()
    client.create_repo("in")
    for number, size in enumerate(SIZES):
        client.put_file_bytes(("in", "master"), f"/{number}", content(number, size))
    client.create_secret("token", {"key": "value"})
    return server


def content(number: int, size: int) -> bytes:
    return random.Random(number).randbytes(size)


def check(root: Path, start_pachd: StartPachd) -> python_pachyderm.Client:
    client = start_pachd(root).client()
    for number, size in enumerate(SIZES):
        assert client.get_file(("in", "master"), f"/{number}").read() == content(number, size)
    assert [each.secret.name for each in client.list_secret()] == ["token"]
    assert list(client.fsck()) == []
    return client


@pytest.mark.parametrize("target", ["kept", "kept.tar"])
def test_a_backup_of_a_running_server_is_restored_elsewhere(
    server: Localpachd, tmp_path: Path, target: str, start_pachd: StartPachd, capsys: pytest.CaptureFixture[str]
) -> None:
    over = threading.Event()
    client = server.client()

    def write() -> None:
        mine = server.client()
        number = 0
        while not over.is_set():
            mine.put_file_bytes(("in", "master"), f"/more{number}", content(number, 70_000))
            mine.create_repo("doomed")
            mine.put_file_bytes(("doomed", "master"), "/file", content(-number, 70_000))
            mine.delete_repo("doomed")
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert main(["backup", str(tmp_path / "root"), str(tmp_path / target)]) == 0
    finally:
        over.set()
        writer.join()
    assert "all verified" in capsys.readouterr().out
    client.delete_repo("in")  # later changes do not touch the backup
    server.stop()
    shutil.rmtree(tmp_path / "root")
    assert main(["restore", str(tmp_path / target), str(tmp_path / "elsewhere")]) == 0
    assert ((tmp_path / "elsewhere" / "secrets").stat().st_mode & 0o777) == 0o700
    restored = check(tmp_path / "elsewhere", start_pachd)
    more = [each.file.path for each in restored.list_file(("in", "master"), "/") if each.file.path.startswith("/more")]
    for path in more:
        assert restored.get_file(("in", "master"), path).read() == content(int(path[5:]), 70_000)
    assert list(tmp_path.glob(".backup-*")) == []


@pytest.mark.parametrize(
    ("member", "text"),
    [
        ("pachd.sqlite", "pachd.sqlite is not what was backed up"),
        ("secrets/token.json", "secrets/token.json is not what was backed up"),
        ("backup.json", "not a whole backup"),
        ("big", "is damaged"),
        ("small", "is damaged"),
    ],
)
def test_a_damaged_backup_is_refused(
    kept: Path, tmp_path: Path, member: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "elsewhere"
    if member == "small":
        with closing(sqlite3.connect(kept / "chunks/small.sqlite", isolation_level=None)) as conn:
            conn.execute("UPDATE small SET data = zeroblob(length(data))")
    else:
        path = next(kept.glob("chunks/??/*")) if member == "big" else kept / member
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.unlink()
        path.write_bytes(b"" if member == "backup.json" else data)
    assert main(["restore", str(kept), str(target)]) == 1
    assert text in capsys.readouterr().err
    with pytest.raises(FailedPrecondition, match="holds only a part of a backup: restore it again"):
        Server(ServerOptions(target, port=0))


def test_a_restore_that_failed_is_tried_again(
    kept: Path, tmp_path: Path, start_pachd: StartPachd, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "elsewhere"
    (kept / "backup.json").rename(tmp_path / "contents")
    for _ in range(2):
        assert main(["restore", str(kept), str(target)]) == 1
        assert "not a whole backup" in capsys.readouterr().err
    (tmp_path / "contents").rename(kept / "backup.json")
    assert main(["restore", str(kept), str(target)]) == 0
    check(target, start_pachd)
    assert main(["restore", str(kept), str(target)]) == 1
    assert "is not empty: restore into a new directory" in capsys.readouterr().err


def test_an_archive_that_is_no_backup_writes_nothing_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("../outside", "/outside", "chunks/../../outside", "lock"):
        (tmp_path / "x").write_text("x")
        with tarfile.open(tmp_path / "bad.tar", "w") as tar:
            tar.add(tmp_path / "x", name)
        assert main(["restore", str(tmp_path / "bad.tar"), str(tmp_path / "root")]) == 1
        assert "is not a backup" in capsys.readouterr().err
        assert not (tmp_path / "outside").exists()


def test_a_target_in_use_and_a_directory_without_server_are_refused(
    server: Localpachd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert main(["backup", str(tmp_path / "root"), str(tmp_path / "full")]) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(["restore", str(tmp_path / "full"), str(tmp_path / "root")]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert main(["backup", str(tmp_path / "full"), str(tmp_path / "new")]) == 1
    assert "is not the root of a localpachd" in capsys.readouterr().err


def test_damage_is_named_by_file_and_healed_by_the_same_bytes(
    server: Localpachd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, client = tmp_path / "root", server.client()
    for path in root.glob("chunks/??/*"):
        data = bytearray(path.read_bytes())
        data[1000] ^= 1
        path.write_bytes(data)
    with closing(sqlite3.connect(root / "chunks/small.sqlite", isolation_level=None)) as conn:
        conn.execute("UPDATE small SET data = substr(data, 1, length(data) - 1)")
    assert main(["fsck", "--verify", str(root)]) == 1
    said = capsys.readouterr().out
    for number, size in enumerate(SIZES):
        assert f":/{number} cannot be read: chunk " in said
        error = refusal(client, number)
        assert error.code() == grpc.StatusCode.DATA_LOSS
        assert f":/{number} cannot be read" in (error.details() or "")
        client.create_repo(f"again{number}")
        client.put_file_bytes((f"again{number}", "master"), "/same", content(number, size))
        assert client.get_file(("in", "master"), f"/{number}").read() == content(number, size)
    assert main(["backup", str(root), str(tmp_path / "kept")]) == 0
    assert main(["fsck", "--verify", str(root)]) == 0


def refusal(client: python_pachyderm.Client, number: int) -> grpc.RpcError:
    """The status with which the reading of a file ends."""
    try:
        client.get_file(("in", "master"), f"/{number}").read()
    except grpc.RpcError as error:
        return error
    except ConnectionError as error:  # of the client, for a file whose first bytes are refused
        assert isinstance(error.__cause__, grpc.RpcError)
        return error.__cause__
    raise AssertionError("a damaged file was served as good")
