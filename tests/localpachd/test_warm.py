"""Warm processes and their server: however that ends, they end with it, and the next one starts with none."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest
import python_pachyderm
from python_pachyderm.proto.v2.pps import pps_pb2

from speclang.warm_annotations import SECONDS
from tests.localpachd.test_recovery import finished, put
from tests.localpachd.worker.test_batch_channel import asking
from tests.localpachd.worker.test_warm_workers import COUNT
from tests.servers import Localpachd, StartPachd


def seen(client: python_pachyderm.Client, name: str) -> str:
    """Commits a file; how many datums the process that took it has seen."""
    put(client, name)
    assert finished(client, "p").state == pps_pb2.JOB_SUCCESS
    content: bytes = client.get_file(("p", "master"), "/seen").read()
    return content.decode()


def create(client: python_pachyderm.Client, alive: Path) -> None:
    """Creates a pipeline whose process is kept, and locks a file for as long as it lives."""
    alive.touch()
    transform = pps_pb2.Transform(cmd=asking(COUNT).cmd, env={"ALIVE": str(alive)}, datum_batching=True)
    request = pps_pb2.CreatePipelineRequest(
        pipeline=pps_pb2.Pipeline(name="p"),
        transform=transform,
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(name="in", repo="texts", glob="/")),
        metadata=pps_pb2.Metadata(annotations={SECONDS: "600"}),
    )
    client.create_pipeline_from_request(request)


@pytest.mark.parametrize("end", [Localpachd.stop, Localpachd.kill])
def test_a_server_that_ends_leaves_no_process(
    start_pachd: StartPachd, tmp_path: Path, end: Callable[[Localpachd], None]
) -> None:
    root, alive = tmp_path / "root", tmp_path / "alive"
    server = start_pachd(root)
    client = server.client()
    client.create_repo("texts")
    create(client, alive)
    assert [seen(client, each) for each in "ab"] == ["1", "2"]
    end(server)
    with alive.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    server = start_pachd(root)
    assert list((root / "scratch").glob("worker-*")) == []
    assert [seen(server.client(), each) for each in "cd"] == ["1", "2"]
