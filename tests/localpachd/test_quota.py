"""A server with --quota: refusals, jobs, and the room that deletions make."""

from __future__ import annotations

import random
from pathlib import Path

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from tests import servers
from tests.conditions import until
from tests.servers import StartPachd

MB = 1_000_000


def put(client: Client, repo: str, size: int, seed: int) -> None:
    client.put_file_bytes((repo, "master"), f"/{seed}", random.Random(seed).randbytes(size))


def refused(client: Client, repo: str, size: int, seed: int) -> str:
    with pytest.raises(grpc.RpcError) as info:
        put(client, repo, size, seed)
    assert info.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return str(info.value.details())


def test_puts_are_refused_until_a_deletion_has_made_room(start_pachd: StartPachd, tmp_path: Path) -> None:
    client = start_pachd(tmp_path / "root", "--quota", "10M").client()
    for repo in ("old", "new"):
        client.create_repo(repo)
    put(client, "old", 6 * MB, 1)
    text = refused(client, "new", 6 * MB, 2)
    assert "the server's quota of 10 MB is used up" in text
    assert "delete files or repos, let it squash old commits (--retention), or raise --quota" in text
    put(client, "new", 1 * MB, 3)
    client.delete_repo("old")

    def fits() -> bool:
        try:
            put(client, "new", 6 * MB, 2)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            return False
        return True

    until(fits)
    assert client.get_file(("new", "master"), "/2").read() == random.Random(2).randbytes(6 * MB)
    assert [each.error for each in client.fsck()] == []


def test_a_job_fails_with_the_reason(start_pachd: StartPachd, tmp_path: Path) -> None:
    client = start_pachd(tmp_path / "root", "--quota", "10M").client()
    client.create_repo("in")
    put(client, "in", 1000, 1)
    client.create_pipeline(
        "large",
        transform=pps_pb2.Transform(cmd=["sh"], stdin=["head -c 12000000 /dev/urandom > /pfs/out/noise"]),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/")),
    )
    (job,) = client.list_job("large")
    info = next(client.inspect_job(job.job.id, "large", wait=True))
    assert info.state == pps_pb2.JOB_FAILURE
    assert "the server's quota of 10 MB is used up" in info.reason
    client.delete_pipeline("large")
    put(client, "in", 1000, 2)


def test_a_start_counts_what_is_there(start_pachd: StartPachd, tmp_path: Path) -> None:
    first = start_pachd(tmp_path / "root")
    first.client().create_repo("in")
    put(first.client(), "in", 9 * MB, 1)
    first.stop()
    assert "used up" in refused(start_pachd(tmp_path / "root", "--quota", "10M").client(), "in", 2 * MB, 2)


@pytest.mark.parametrize("given", ["much", "0", "-5G"])
def test_sizes_that_are_none_are_explained(tmp_path: Path, given: str) -> None:
    tried = servers.run("--root", tmp_path / "root", f"--quota={given}")
    assert tried.returncode == 2
    assert f"{given} is not a number of bytes, such as 50G or 2Ti" in tried.stderr
