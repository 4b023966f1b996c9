"""Deletions on a full disk: they have room of their own, and what they free can be used."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import grpc
import pytest
from python_pachyderm import Client

from localpachd.disk import SIZE, DiskReserve
from tests import servers
from tests.conditions import until
from tests.disks import MOUNTED, SmallDisk, can_mount

LARGE = 6 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    place = tmp_path / "disk"
    place.mkdir()
    if not can_mount(place):
        pytest.skip("no disk can be mounted here")
    server = servers.start(place / "root", within=[*MOUNTED, str(place)])
    yield SmallDisk(server, place / "root")
    server.kill()


def content(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def until_refused(step: Callable[[int], object]) -> int:
    """Repeats a step until the disk has no room for it; returns how many times it had."""
    for number in range(100_000):
        try:
            step(number)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED, error
            assert "no space left on the disk" in str(error.details())
            return number
    raise AssertionError("the disk is not full")


def fill_with_files(client: Client) -> None:
    """Files take all the room, and small steps the rest of it."""

    def put(size: int, number: int) -> None:
        client.put_file_bytes(("old", "master"), f"/{size}-{number}", content(number, size))

    for size in (LARGE, 100_000, 1):
        until_refused(partial(put, size))
    until_refused(lambda n: client.create_repo(f"small-{n}"))


def fill_with_repos(client: Client, disk: SmallDisk) -> None:
    """Others take all the room, but for what the database has already; small steps use that up."""
    disk.fill()
    until_refused(lambda n: client.create_repo(f"small-{n}"))


def patiently_put(client: Client, path: str, data: bytes) -> None:
    """Puts a file as soon as there is room."""

    def put() -> bool:
        try:
            client.put_file_bytes(("kept", "master"), path, data)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            return False
        return True

    until(put)


def delete_repo(client: Client) -> None:
    client.delete_repo("old")


def squash(client: Client) -> None:
    commits = [each.commit.id for each in client.list_commit("old")]
    for each in commits[1:]:
        client.squash_commit(each)


def delete_all(client: Client) -> None:
    for each in client.list_repo():
        if each.repo.name != "kept":
            client.delete_repo(each.repo.name)


@pytest.mark.parametrize("delete", [delete_repo, delete_all])
def test_deletions_make_room_on_a_disk_filled_with_files(disk: SmallDisk, delete: Callable[[Client], None]) -> None:
    client = disk.server.client()
    for repo in ("kept", "old"):
        client.create_repo(repo)
    client.put_file_bytes(("kept", "master"), "/a", content(1, LARGE))
    fill_with_files(client)
    delete(client)
    assert "old" not in {each.repo.name for each in client.list_repo()}
    patiently_put(client, "/b", content(2, LARGE))
    assert client.get_file(("kept", "master"), "/a").read() == content(1, LARGE)
    assert client.get_file(("kept", "master"), "/b").read() == content(2, LARGE)
    assert [each.error for each in client.fsck()] == []
    until(lambda: (disk.seen_root / "reserve").stat().st_size >= SIZE)


def test_deletions_work_on_a_disk_filled_by_others(disk: SmallDisk) -> None:
    client = disk.server.client()
    client.create_repo("kept")
    client.create_repo("old")
    for version in range(3):
        client.put_file_bytes(("old", "master"), "/a", content(version, LARGE))
    fill_with_repos(client, disk)
    squash(client)
    assert client.get_file(("old", "master"), "/a").read() == content(2, LARGE)
    patiently_put(client, "/b", content(3, LARGE))
    delete_all(client)
    assert [each.repo.name for each in client.list_repo()] == ["kept"]
    assert client.get_file(("kept", "master"), "/b").read() == content(3, LARGE)


def test_it_is_used_in_halves_and_made_again(tmp_path: Path) -> None:
    reserve = DiskReserve(tmp_path / "reserve")
    assert not reserve.use()
    assert not reserve.used
    reserve.restore()
    sizes = [SIZE]
    assert (tmp_path / "reserve").stat().st_size == SIZE
    while reserve.use():
        assert reserve.used
        sizes.append((tmp_path / "reserve").stat().st_size)
    assert sizes[1] == SIZE // 2
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0
    reserve.restore()
    assert (tmp_path / "reserve").stat().st_size == SIZE
    assert (tmp_path / "reserve").stat().st_mode & 0o777 == 0o600
