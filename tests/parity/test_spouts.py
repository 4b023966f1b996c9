"""Spouts and services through the official client. The spout's code uses the same client inside."""

import grpc
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.conditions import until
from tests.parity.places import MakeInput, Place, listed_repos
from tests.servers import OwnPort

# A real cluster needs an image that holds the client.
IMAGE = "pachyderm/python-pachyderm"
PYTHON = """
import os, time, python_pachyderm
client = python_pachyderm.Client()  # of the sidecar: only there a spout may commit to its output
repo = os.environ["PPS_PIPELINE_NAME"]
with client.commit(repo, "master") as commit:
    client.put_file_bytes(commit, "/first", b"1")
client.put_file_bytes((repo, "master"), "/second", b"2")
time.sleep(60)
"""


def spout(place: Place, code: str) -> str:
    script = f"exec python3 - <<'END'\n{code}\nEND"
    return place.pipeline(script, transform=pps_pb2.Transform(image=IMAGE), spout=pps_pb2.Spout())


def test_a_spout_commits_to_its_output_and_pipelines_below_it_read_that(
    place: Place, pfs: MakeInput, client: Client
) -> None:
    name = spout(place, PYTHON)
    below = place.pipeline("cp /pfs/in/* /pfs/out/", input=pfs(name, name="in"))
    stream = client.subscribe_commit(name, "master", state=pfs_pb2.FINISHED)
    for _ in range(2):
        next(stream)
    stream.cancel()
    assert place.paths(name) == ["/first", "/second"]
    head = client.inspect_branch(name, "master").head.id
    assert place.job(below, head).state == pps_pb2.JOB_SUCCESS
    assert place.paths(below) == ["/first", "/second"]


def test_a_spout_has_no_jobs_and_no_meta_repo(place: Place, client: Client) -> None:
    name = spout(place, "import time; time.sleep(60)")
    (info,) = client.inspect_pipeline(name, details=True)
    assert info.type == pps_pb2.PipelineInfo.PIPELINE_TYPE_SPOUT
    assert info.details.HasField("spout")
    assert list(client.list_job(pipeline_name=name)) == []
    assert {each.repo.type for each in listed_repos(client, type="") if each.repo.name == name} == {"user", "spec"}
    (above,) = client.inspect_branch(name, "master").direct_provenance
    assert above.repo.type == "spec"


def test_a_service_has_one_job_that_runs_until_the_next(
    place: Place, pfs: MakeInput, client: Client, own_port: OwnPort
) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    service = pps_pb2.Service(internal_port=8000, external_port=own_port(), type="ClusterIP")
    name = place.pipeline("sleep 60", input=pfs(repo, "/"), service=service)
    (info,) = client.inspect_pipeline(name, details=True)
    assert info.type == pps_pb2.PipelineInfo.PIPELINE_TYPE_SERVICE
    assert (info.details.service.internal_port, info.details.service.type) == (8000, "ClusterIP")

    def state(id_: str) -> int:
        (job,) = client.inspect_job(id_, pipeline_name=name)
        return int(job.state)

    (before,) = [each.job.id for each in client.list_job(pipeline_name=name)]
    until(lambda: state(before) == pps_pb2.JOB_RUNNING)
    second = place.put(repo, a="2")
    assert place.job(name, before).state == pps_pb2.JOB_SUCCESS
    assert state(second) in (pps_pb2.JOB_CREATED, pps_pb2.JOB_STARTING, pps_pb2.JOB_RUNNING)


def test_a_service_without_a_port_of_the_cluster_gets_nowhere(place: Place, pfs: MakeInput, client: Client) -> None:
    """Kubernetes refuses such a service, localpachd such a pipeline."""
    service = pps_pb2.Service(internal_port=8000)
    repo = place.repo()
    try:
        name = place.pipeline("sleep 60", input=pfs(repo, "/"), service=service)
    except grpc.RpcError as error:
        assert error.details() == "service.external_port must be a port from 1 to 65535"
        return
    until(lambda: next(client.inspect_pipeline(name)).state == pps_pb2.PIPELINE_FAILURE)
    assert "must be between 1 and 65535" in next(client.inspect_pipeline(name)).reason
