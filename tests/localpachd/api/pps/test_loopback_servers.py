"""NextDatum: the service alone, and user code that batches datums on a running server."""

from functools import partial

import grpc
import pytest
from google.protobuf import empty_pb2
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2
from python_pachyderm.proto.v2.worker import worker_pb2, worker_pb2_grpc

from localpachd.api.pps.loopback_servers import GrpcBatchServer
from tests.servers import Unique


def test_each_call_takes_an_error_and_returns_variables() -> None:
    errors: list[str] = []

    def handler(error: str) -> list[str] | None:
        errors.append(error)
        return [f"n={len(errors)}"] if len(errors) < 3 else None

    server = GrpcBatchServer()
    port = server.open(handler)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = worker_pb2_grpc.WorkerStub(channel)
        assert list(stub.NextDatum(worker_pb2.NextDatumRequest()).env) == ["n=1"]
        assert list(stub.NextDatum(worker_pb2.NextDatumRequest(error="oh")).env) == ["n=2"]
        assert list(stub.NextDatum(worker_pb2.NextDatumRequest()).env) == []
        assert errors == ["", "oh", ""]
        assert stub.Status(empty_pb2.Empty()) == pps_pb2.WorkerStatus()
        with pytest.raises(grpc.RpcError, match="localpachd does not serve pachyderm.worker.Worker/Cancel"):
            stub.Cancel(worker_pb2.CancelRequest())
        server.close(port)
        with pytest.raises(grpc.RpcError):
            stub.NextDatum(worker_pb2.NextDatumRequest())


def test_a_workers_status_names_its_job() -> None:
    server = GrpcBatchServer()
    port = server.open(lambda error: ["PACH_JOB_ID=job", "PPS_POD_NAME=worker", "other=a=b"])
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = worker_pb2_grpc.WorkerStub(channel)
        assert not stub.Status(empty_pb2.Empty()).HasField("datum_status")
        stub.NextDatum(worker_pb2.NextDatumRequest())
        status = stub.Status(empty_pb2.Empty())
        assert (status.worker_id, status.job_id) == ("worker", "job")
        assert status.datum_status.started.seconds > 0
    server.close(port)


def test_ports_are_served_side_by_side() -> None:
    server = GrpcBatchServer()

    def give(name: str, error: str) -> list[str]:
        return [name]

    ports = [server.open(partial(give, name)) for name in ("a", "b")]
    for port, name in zip(ports, ("a", "b"), strict=True):
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = worker_pb2_grpc.WorkerStub(channel)
            assert list(stub.NextDatum(worker_pb2.NextDatumRequest()).env) == [name]
        server.close(port)


BATCHED = """
import os, pathlib, grpc
from python_pachyderm.proto.v2.worker import worker_pb2, worker_pb2_grpc
stub = worker_pb2_grpc.WorkerStub(grpc.insecure_channel("127.0.0.1:" + os.environ["PPS_WORKER_GRPC_PORT"]))
error, count = "", 0
while True:
    reply = stub.NextDatum(worker_pb2.NextDatumRequest(error=error))
    env, error, count = dict(each.split("=", 1) for each in reply.env), "", count + 1
    source = pathlib.Path(env["in"])
    if source.name == "bad":
        error = "cannot read bad"
    else:
        (pathlib.Path(env["in"].rpartition("/in/")[0]) / "out" / source.name).write_text(f"{count} {os.getpid()}")
"""


def test_one_process_takes_one_datum_after_another(client: Client, unique: Unique) -> None:
    repo, name = unique("in"), unique("p")
    client.create_repo(repo)
    with client.commit(repo, "master") as commit:
        for path in ("/a", "/b", "/c"):
            client.put_file_bytes(commit, path, b"x")
    client.create_pipeline(
        name,
        transform=pps_pb2.Transform(cmd=["python3", "-c", BATCHED], datum_batching=True),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo=repo, name="in", glob="/*")),
        datum_set_spec=pps_pb2.DatumSetSpec(number=3),
        datum_tries=1,
    )
    job = next(iter(client.list_job(pipeline_name=name)))
    (job,) = client.inspect_job(job.job.id, pipeline_name=name, wait=True)
    assert (job.state, job.data_processed) == (pps_pb2.JOB_SUCCESS, 3)
    written = [client.get_file((name, "master"), path).read().decode().split() for path in ("/a", "/b", "/c")]
    assert len({pid for _, pid in written}) == 1
    assert sorted(count for count, _ in written) == ["1", "2", "3"]

    with client.commit(repo, "master") as commit:
        client.put_file_bytes(commit, "/bad", b"x")
    (job,) = client.inspect_job(commit.id, pipeline_name=name, wait=True)
    assert (job.state, job.data_failed, job.data_skipped) == (pps_pb2.JOB_FAILURE, 1, 3)
    (failed,) = client.list_datum(name, commit.id, datum_filter=pps_pb2.ListDatumRequest.Filter(state=[pps_pb2.FAILED]))
    meta = (pps_pb2.JobInfo.FromString(job.SerializeToString()).output_commit.repo.name, "master", commit.id, "meta")
    with client.get_file(meta, f"/meta/{failed.datum.id}/meta") as file:
        assert b"cannot read bad" in file.read()
