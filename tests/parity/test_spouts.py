"""Spouts and services through the official client. The spout's code uses the same client inside."""

from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.parity.places import MakeInput, Place

# A real cluster needs an image that holds the client.
IMAGE = "pachyderm/python-pachyderm"
PYTHON = """
import os, time, python_pachyderm
client = python_pachyderm.Client.new_in_cluster()
repo = os.environ["PPS_PIPELINE_NAME"]
with client.commit(repo, "master") as commit:
    client.put_file_bytes(commit, "/first", b"1")
client.put_file_bytes((repo, "master"), "/second", b"2")
print("done", flush=True)
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
    for line in client.get_pipeline_logs(name, follow=True):
        if line.user and line.message == "done":
            break
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
    assert {each.repo.type for each in client.list_repo(type="") if each.repo.name == name} == {"user", "spec"}
    (above,) = client.inspect_branch(name, "master").direct_provenance
    assert above.repo.type == "spec"


def test_a_service_has_one_job_that_runs_until_the_next(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    service = pps_pb2.Service(internal_port=8000)
    name = place.pipeline("sleep 60", input=pfs(repo, "/"), service=service)
    (info,) = client.inspect_pipeline(name, details=True)
    assert info.type == pps_pb2.PipelineInfo.PIPELINE_TYPE_SERVICE
    assert (info.details.service.internal_port, info.details.service.type) == (8000, "NodePort")
    (before,) = [each.job.id for each in client.list_job(pipeline_name=name)]
    second = place.put(repo, a="2")
    assert place.job(name, before).state == pps_pb2.JOB_SUCCESS
    (job,) = client.inspect_job(second, pipeline_name=name)
    assert job.state in (pps_pb2.JOB_CREATED, pps_pb2.JOB_STARTING, pps_pb2.JOB_RUNNING)
