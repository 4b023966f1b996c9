"""A server killed at any time continues after a restart: nothing is lost and no work is repeated."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import python_pachyderm
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.servers import Localpachd, StartPachd

PFS = 'PFS="${LOCALPACHD_PFS:-/pfs}"'


def pipeline(client: python_pachyderm.Client, name: str, repo: str, script: str, **fields: Any) -> None:
    client.create_pipeline(
        name,
        pps_pb2.Transform(cmd=["sh", "-e"], stdin=[PFS, *script.split("\n")]),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(name="in", repo=repo, glob="/*")),
        datum_set_spec=pps_pb2.DatumSetSpec(number=1),
        **fields,
    )


def put(client: python_pachyderm.Client, names: str) -> None:
    with client.modify_file_client(("texts", "master")) as writer:
        for name in names:
            writer.put_file_from_bytes(f"/{name}", name.encode())


def newest(client: python_pachyderm.Client, name: str) -> pps_pb2.JobInfo:
    return next(iter(client.list_job(name)))


def finished(client: python_pachyderm.Client, name: str) -> pps_pb2.JobInfo:
    return next(iter(client.inspect_job(newest(client, name).job.id, name, wait=True)))


def said(client: python_pachyderm.Client, name: str) -> Iterator[str]:
    """The lines of user code in the log of a pipeline's newest job, as they come."""
    for line in client.get_job_logs(name, newest(client, name).job.id, follow=True):
        if line.user:
            yield line.message


def content(client: python_pachyderm.Client, repo: str) -> dict[str, bytes]:
    """The contents of the files at a branch's head, by path."""
    found = [each.file for each in client.walk_file((repo, "master"), "/") if each.file_type == pfs_pb2.FILE]
    return {file.path: client.get_file(file.commit, file.path).read() for file in found}


def hashes(client: python_pachyderm.Client, repo: str) -> dict[str, bytes]:
    """The hashes of a whole tree, including directories, by path."""
    return {each.file.path: each.hash for each in client.walk_file((repo, "master"), "/")}


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """A named pipe on which the waiting datum blocks without polling."""
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    return fifo


def waiting(tmp_path: Path, go: Path) -> str:
    """Records its datum in a file outside and copies it; on /c it prints a line and waits for the pipe first."""
    return (
        'name=$(ls "$PFS/in")\n'
        f"echo $name >> {tmp_path}/ran\n"
        f"test $name != c || {{ echo waiting; cat {go} > /dev/null; }}\n"
        'cp "$PFS/in/$name" "$PFS/out/$name"'
    )


def test_a_killed_server_continues_where_it_was(start_pachd: StartPachd, tmp_path: Path, go: Path) -> None:
    server = start_pachd(tmp_path / "root")
    client = server.client()
    client.create_repo("texts")
    put(client, "abcdef")
    pipeline(client, "copy", "texts", waiting(tmp_path, go))
    pipeline(client, "copy2", "copy", 'cp "$PFS"/in/* "$PFS/out/"')
    assert next(said(client, "copy")) == "waiting"
    before = newest(client, "copy")
    assert before.state == pps_pb2.JOB_RUNNING
    server.kill()

    client = start_pachd(tmp_path / "root").client()
    running = newest(client, "copy")
    assert running.job.id == before.job.id
    # The second "waiting" comes from the restarted server; the log continues after the first.
    assert list(itertools.islice(said(client, "copy"), 2)) == ["waiting"] * 2
    go.write_text("go")
    job = finished(client, "copy")
    assert job.state == pps_pb2.JOB_SUCCESS, job.reason
    assert (job.restart, job.data_processed, job.data_total) == (1, 6, 6)
    ran = (tmp_path / "ran").read_text().split()
    assert sorted(ran) == sorted(["a", "b", "c", "c", "d", "e", "f"])
    assert content(client, "copy") == {f"/{name}": name.encode() for name in "abcdef"}
    assert finished(client, "copy2").state == pps_pb2.JOB_SUCCESS
    assert content(client, "copy2") == content(client, "copy")


def test_a_stopped_server_continues_as_well(start_pachd: StartPachd, tmp_path: Path, go: Path) -> None:
    server = start_pachd(tmp_path / "root")
    client = server.client()
    client.create_repo("texts")
    put(client, "abcd")
    pipeline(client, "copy", "texts", waiting(tmp_path, go))
    assert next(said(client, "copy")) == "waiting"
    server.stop()
    client = start_pachd(tmp_path / "root").client()
    go.write_text("go")
    job = finished(client, "copy")
    assert (job.state, job.restart, job.data_processed) == (pps_pb2.JOB_SUCCESS, 1, 4)
    assert content(client, "copy") == {f"/{name}": name.encode() for name in "abcd"}


@pytest.mark.only_in_all
def test_killed_again_and_again_the_result_is_the_same(start_pachd: StartPachd, tmp_path: Path) -> None:
    script = 'cp "$PFS"/in/* "$PFS/out/"\necho done'

    def build(root: Path, killed: Callable[[Localpachd], Localpachd]) -> dict[str, dict[str, bytes]]:
        server = start_pachd(root)
        server.client().create_repo("texts")
        put(server.client(), "abcdef")
        pipeline(server.client(), "one", "texts", script)
        server = killed(server)
        pipeline(server.client(), "two", "one", script)
        for names in ("xy", "a", "z"):
            server = killed(server)
            put(server.client(), names)
        server = killed(server)
        client = server.client()
        client.delete_file(("texts", "master"), "/b")
        server = killed(server)
        assert finished(server.client(), "two").state == pps_pb2.JOB_SUCCESS
        return {repo: hashes(server.client(), repo) for repo in ("one", "two")}

    def restarted(server: Localpachd) -> Localpachd:
        # Once the server has logged a line about the newest job, it is in progress or finished.
        client = server.client()
        job = newest(client, "one").job.id
        assert any(line.job_id == job for line in client.get_pipeline_logs("one", master=True, follow=True))
        server.kill()
        return start_pachd(tmp_path / "often")

    often = build(tmp_path / "often", restarted)
    never = build(tmp_path / "never", lambda server: server)
    assert often == never
    assert set(never["two"]) == {"/", *(f"/{name}" for name in "acdefxyz")}
