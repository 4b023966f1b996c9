"""Starts on roots in which something is wrong: the server starts, or says in one sentence what to do."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from python_pachyderm.proto.v2.pps import pps_pb2

from tests import servers
from tests.localpachd.worker.layout.deep import deep
from tests.servers import StartPachd

_DEEP = """python3 - <<'END'
import os
holder = os.open(os.environ.get("LOCALPACHD_PFS", "/pfs") + "/out", os.O_RDONLY)
for _ in range(1200):
    os.mkdir("deep-directory", dir_fd=holder)
    inner = os.open("deep-directory", os.O_RDONLY, dir_fd=holder)
    os.close(holder)
    holder = inner
END"""


@pytest.fixture(scope="module")
def filled(start_shared_pachd: StartPachd, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a server that has stopped."""
    root = tmp_path_factory.mktemp("filled") / "root"
    server = start_shared_pachd(root)
    client = server.client()
    client.create_repo("texts")
    with client.modify_file_client(("texts", "master")) as writer:
        writer.put_file_from_bytes("/big", os.urandom(100_000))
        writer.put_file_from_bytes("/small", b"small")
    server.stop()
    return root


@pytest.fixture
def root(filled: Path, tmp_path: Path) -> Path:
    """A root of the test's own, like that."""
    return Path(shutil.copytree(filled, tmp_path / "root"))


def _refusal(root: Path) -> str:
    """The text with which a server refuses to start."""
    run = servers.run("--root", root, "--port", 0)
    assert run.returncode == 1
    assert run.stdout == ""
    lines = [line for line in run.stderr.splitlines() if line.startswith("localpachd: ")]
    assert len(lines) == 1, run.stderr
    assert "Traceback" not in run.stderr
    assert str(root) in lines[0]
    return lines[0]


def test_nested_directories_in_scratch(start_pachd: StartPachd, root: Path) -> None:
    left = root / "scratch" / "worker-left"
    left.mkdir(parents=True)
    deep(left, 1500, "directory-with-a-long-name" * 3)
    start_pachd(root)
    assert list((root / "scratch").iterdir()) == []


def test_what_cannot_be_deleted_from_scratch_is_named(start_pachd: StartPachd, root: Path) -> None:
    left = root / "scratch" / "worker-left"
    left.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "none", left], check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs the right to mount")
    try:
        start_pachd(root)
        assert (
            f"cannot delete {left}: Device or resource busy. Delete {left} yourself"
            in root.with_name("root.log").read_text()
        )
    finally:
        subprocess.run(["umount", left], check=True)


def test_a_root_that_is_moved_away(start_pachd: StartPachd, root: Path) -> None:
    server = start_pachd(root)
    moved = root.rename(root.with_name("moved"))
    refused = pytest.raises(grpc.RpcError, match=f"{root} is gone: put it back or, if it was moved")
    with refused, server.client().modify_file_client(("texts", "master")) as writer:
        writer.put_file_from_bytes("/more", os.urandom(10 << 20))
    server.stop()
    log = root.with_name("root.log").read_text()
    assert "Traceback" not in log
    assert f"localpachd: {root} is gone: " in log
    assert start_pachd(moved).client().get_file(("texts", "master"), "/small").read() == b"small"


def test_foreign_files_among_the_chunks(start_pachd: StartPachd, root: Path) -> None:
    for place in ("ab/.nfs00000001", "zz/other", "tmp/.nfs00000002"):
        (root / "chunks" / place).parent.mkdir(exist_ok=True)
        (root / "chunks" / place).write_text("not a chunk")
    (root / "chunks" / "tmp" / "directory").mkdir()
    client = start_pachd(root).client()
    assert client.get_file(("texts", "master"), "/small").read() == b"small"
    assert client.get_file(("texts", "master"), "/big").read(200_000)
    assert (root / "chunks" / "ab" / ".nfs00000001").exists()


@pytest.mark.parametrize("name", ["pachd.sqlite", "chunks/small.sqlite"])
@pytest.mark.parametrize("damage", ["overwritten", "truncated", "directory"])
def test_a_damaged_database(root: Path, name: str, damage: str) -> None:
    place = root / name
    size = place.stat().st_size
    for each in root.glob(f"{name}-*"):
        each.unlink()
    if damage == "overwritten":
        place.write_bytes(b"not a database" * 1000)
    elif damage == "truncated":
        os.truncate(place, size // 2 // 4096 * 4096 + 100 if size > 8192 else 1000)
    else:
        place.unlink()
        place.mkdir()
    text = _refusal(root)
    assert f"{place} cannot be read: it is " in text
    assert "restore a backup" in text


@pytest.mark.parametrize(("name", "fix"), [("scratch", "move it away"), ("lock", "move it away")])
def test_a_name_that_is_taken(root: Path, name: str, fix: str) -> None:
    place = root / name
    if place.is_dir():
        shutil.rmtree(place)
        place.touch()
    else:
        place.unlink()
        place.mkdir()
    text = _refusal(root)
    assert str(place) in text
    assert fix in text


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Makes a directory on a disk of its own of 4 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(place)]
    if subprocess.run(made, check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs the right to mount")
    yield lambda: place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("used", [False, True])
def test_a_full_disk(start_pachd: StartPachd, small_disk: Callable[[], Path], used: bool) -> None:
    root = small_disk() / "root"
    if used:
        start_pachd(root).stop()
    filler = root.with_name("filler")
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    assert "no space left on the disk" in _refusal(root)
    filler.unlink()
    start_pachd(root).stop()


def test_jobs_whose_code_nests_directories_leave_nothing_in_scratch(start_pachd: StartPachd, tmp_path: Path) -> None:
    client = start_pachd(tmp_path / "root").client()
    client.create_repo("texts")
    with client.modify_file_client(("texts", "master")) as writer:
        writer.put_file_from_bytes("/big", os.urandom(1_000_000))
    client.create_pipeline(
        "deep",
        pps_pb2.Transform(cmd=["sh"], stdin=_DEEP.split("\n")),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(name="in", repo="texts", glob="/*")),
    )
    job = next(iter(client.list_job("deep"))).job
    info = next(iter(client.inspect_job(job.id, "deep", wait=True)))
    assert info.state == pps_pb2.JOB_FAILURE
    assert info.restart == 0
    assert list((tmp_path / "root" / "scratch").iterdir()) == []
