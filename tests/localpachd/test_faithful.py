"""`localpachd --faithful`: a server that is as late as a cluster, and refuses what pachd crashes on.

Two kinds of servers show it: one that leaves everything undone for minutes, and one that does it in milliseconds.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import python_pachyderm
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc
from python_pachyderm.proto.v2.task import task_pb2
from python_pachyderm.proto.v2.transaction import transaction_pb2

from localpachd.api.schema.schema import storage_pb2
from tests.servers import LATE, StartPachd

MINUTES = (LATE, "3600000")
MILLISECONDS = (LATE, "20")


def put(client: python_pachyderm.Client, path: str, data: bytes) -> None:
    with client.modify_file_client(("in", "master")) as writer:
        writer.put_file_from_bytes(path, data)


def head(client: python_pachyderm.Client) -> pfs_pb2.CommitInfo:
    (info,) = client.inspect_commit(("in", "master"))
    return info


def copy(client: python_pachyderm.Client, name: str) -> None:
    client.create_pipeline(
        name,
        pps_pb2.Transform(cmd=["sh", "-e"], stdin=['cd "${LOCALPACHD_PFS:-/pfs}"', "cp -r in/* out/"]),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(name="in", repo="in", glob="/*")),
    )


def test_all_that_a_killed_server_left_undone_is_done_after_a_restart(start_pachd: StartPachd, tmp_path: Path) -> None:
    server = start_pachd(tmp_path / "root", *MINUTES)
    client = server.client()
    client.create_repo("in")
    put(client, "/a", b"a")
    put(client, "/b", b"bb")
    copy(client, "out")
    closed = head(client)
    assert closed.HasField("finishing")
    assert not closed.HasField("finished")
    (pipeline,) = client.inspect_pipeline("out")
    assert pipeline.state == pps_pb2.PIPELINE_STARTING
    (job,) = client.list_job("out")
    assert job.state == pps_pb2.JOB_CREATED
    server.kill()

    client = start_pachd(tmp_path / "root", *MILLISECONDS).client()
    (job,) = client.inspect_job(job.job.id, "out", wait=True)
    assert (job.state, job.data_processed) == (pps_pb2.JOB_SUCCESS, 2)
    assert head(client).details.size_bytes == 3
    assert client.get_file(("out", "master"), "/b").read() == b"bb"


def test_a_read_waits_until_the_commit_is_finished(start_pachd: StartPachd, tmp_path: Path) -> None:
    client = start_pachd(tmp_path / "root", *MILLISECONDS).client()
    client.create_repo("in")
    reads: list[Callable[[], Any]] = [
        lambda: client.get_file(("in", "master"), "/a").read(),
        lambda: client.inspect_file(("in", "master"), "/a"),
        lambda: list(client.list_file(("in", "master"), "/")),
        lambda: list(client.walk_file(("in", "master"), "/")),
        lambda: list(client.glob_file(("in", "master"), "/*")),
        lambda: list(client.diff_file(("in", "master"), "/")),
    ]
    for number, read in enumerate(reads):
        put(client, "/a", b"a" * number + b".")
        assert read()
        assert head(client).HasField("finished")


def test_a_copy_waits_until_its_source_is_finished(start_pachd: StartPachd, tmp_path: Path) -> None:
    client = start_pachd(tmp_path / "root", *MILLISECONDS).client()
    client.create_repo("in")
    whole = pfs_pb2.Commit(repo=pfs_pb2.Repo(name="in", type="user", project=pfs_pb2.Project(name="default")))
    whole.branch.CopyFrom(pfs_pb2.Branch(repo=whole.repo, name="master"))
    for number in range(10):
        put(client, "/a", b"%d" % number)
        client.copy_file(whole, "/a", ("in", "master"), "/b")
        assert client.get_file(("in", "master"), "/b").read() == b"%d" % number


def test_a_wait_for_a_commit_ends_with_its_caller(start_pachd: StartPachd, tmp_path: Path) -> None:
    server = start_pachd(tmp_path / "root", *MINUTES)
    client = server.client()
    client.create_repo("in")
    put(client, "/a", b"a")
    stub = pfs_pb2_grpc.APIStub(client._channel)
    commit = head(client).commit
    call = stub.GetFile(pfs_pb2.GetFileRequest(file=pfs_pb2.File(commit=commit, path="/a")))
    put(client, "/b", b"b")  # the server has time to begin to wait
    call.cancel()
    server.stop()  # it would not end while a call waits
    assert server.process.returncode == 0


def test_a_request_on_which_pachd_crashes_is_an_internal_error(start_pachd: StartPachd, tmp_path: Path) -> None:
    client = start_pachd(tmp_path / "root", *MILLISECONDS).client()
    client.create_repo("in")
    put(client, "/a", b"a")
    pfs, pps = pfs_pb2_grpc.APIStub(client._channel), pps_pb2_grpc.APIStub(client._channel)
    repo = pfs_pb2.Repo(name="in", type="user", project=pfs_pb2.Project(name="default"))
    half = pfs_pb2.Commit(branch=pfs_pb2.Branch(repo=repo, name="master"))
    whole = pfs_pb2.Commit(repo=repo, branch=half.branch)

    def copying(source: pfs_pb2.Commit) -> list[pfs_pb2.ModifyFileRequest]:
        file = pfs_pb2.CopyFile(src=pfs_pb2.File(commit=source, path="/a"), dst="/b")
        return [pfs_pb2.ModifyFileRequest(set_commit=whole), pfs_pb2.ModifyFileRequest(copy_file=file)]

    create_fileset: grpc.StreamUnaryMultiCallable[Any, bytes] = client._channel.stream_unary(
        "/storage.Fileset/CreateFileset", request_serializer=lambda message: message.SerializeToString()
    )
    without_data = storage_pb2.CreateFilesetRequest(append_file=storage_pb2.AppendFile(path="/a"))
    starting = pfs_pb2.StartCommitRequest(branch=pfs_pb2.Branch(repo=pfs_pb2.Repo(name="in", type="user"), name="x"))
    batched = transaction_pb2.TransactionRequest(start_commit=starting)
    crashing: list[Callable[[], Any]] = [
        lambda: pfs.ModifyFile(iter(copying(half))),
        lambda: pfs.ModifyFile(iter([pfs_pb2.ModifyFileRequest(set_commit=pfs_pb2.Commit(repo=repo, id="master"))])),
        lambda: pfs.CreateFileSet(iter(copying(half)[1:])),
        lambda: list(pps.ListJob(pps_pb2.ListJobRequest(input_commit=[half]))),
        lambda: list(pfs.ListTask(task_pb2.ListTaskRequest())),
        lambda: list(pps.ListTask(task_pb2.ListTaskRequest())),
        lambda: list(client.get_file(("in", "master"), "/a", offset=-1).read()),
        lambda: list(client.list_file(("in", "master"), "/", number=-1, reverse=True)),
        lambda: list(client.walk_file(("in", "master"), "/", number=-1, reverse=True)),
        lambda: list(pps.ListDatum(pps_pb2.ListDatumRequest(number=-1, reverse=True))),
        lambda: client.batch_transaction([batched]),
        lambda: create_fileset(iter([without_data])),
    ]
    for call in crashing:
        with pytest.raises((grpc.RpcError, ConnectionError)) as refused:
            call()
        # The client wraps what goes wrong at the first byte of a file.
        error = refused.value.__cause__ if isinstance(refused.value, ConnectionError) else refused.value
        assert isinstance(error, grpc.Call)
        assert error.code() is grpc.StatusCode.INTERNAL
        assert (error.details() or "").startswith("a real pachd crashes on this request of ")
    pfs.ModifyFile(iter(copying(whole)))
    assert client.get_file(("in", "master"), "/b").read() == b"a"
    assert list(pps.ListJob(pps_pb2.ListJobRequest(input_commit=[whole]))) == []
