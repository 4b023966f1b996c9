"""A server with --retention, after days that its root has seen pass."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.servers import StartPachd


def put(client: Client, name: str) -> str:
    """The id of a commit with one more file, after its job."""
    with client.commit("in", "master") as commit:
        client.put_file_bytes(commit, f"/{name}", name.encode() * 1000)
    (job,) = [each for each in client.list_job("copy") if each.job.id == commit.id]
    assert next(client.inspect_job(job.job.id, "copy", wait=True)).state == pps_pb2.JOB_SUCCESS
    return str(commit.id)


def files(client: Client) -> dict[str, bytes]:
    head = ("copy", "master")
    return {info.file.path: client.get_file(head, info.file.path).read() for info in client.walk_file(head, "/")
            if not info.file.path.endswith("/")}  # fmt: skip


def days_pass(root: Path, days: int) -> None:
    """As if a server had seen days pass since its last commit."""
    with closing(sqlite3.connect(root / "pachd.sqlite")) as conn, conn:
        conn.execute("INSERT OR REPLACE INTO days SELECT 0, MAX(seq) FROM commits")
        conn.execute("INSERT INTO days SELECT ?, MAX(seq) FROM commits", (days,))


def test_a_start_squashes_what_is_old_and_answers_stay(start_pachd: StartPachd, tmp_path: Path) -> None:
    root = tmp_path / "root"
    server = start_pachd(root)
    client = server.client()
    client.create_repo("in")
    client.create_pipeline(
        "copy",
        transform=pps_pb2.Transform(cmd=["sh"], stdin=["cp /pfs/in/* /pfs/out"]),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/*")),
    )
    ids = [put(client, name) for name in ("one", "two", "three")]
    before = files(client)
    assert len(before) == 3
    server.stop()
    days_pass(root, 9)

    server = start_pachd(root, "--retention", "30")
    assert {commit.commit.id for commit in server.client().list_commit("in")} >= set(ids)
    server.stop()

    server = start_pachd(root, "--retention", "5")
    client = server.client()
    left = {commit.commit.id for commit in client.list_commit("in")}
    assert left & set(ids) == {ids[-1]}
    assert files(client) == before
    assert [each.error for each in client.fsck()] == []
    assert {job.job.id for job in client.list_job("copy")} >= set(ids)  # the records of what was computed when
    fourth = put(client, "four")
    info = next(client.inspect_job(fourth, "copy"))
    assert (info.data_processed, info.data_skipped) == (1, 3)
    assert files(client).items() > before.items()
