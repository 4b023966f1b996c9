"""Dumps and profiles for reports of bugs, as pachctl and the clients ask for them."""

import io
import json
import os
import tarfile
from collections.abc import Iterable, Iterator

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from python_pachyderm import Client
from python_pachyderm.proto.v2.debug import debug_pb2, debug_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.parity.places import MakeInput, Place, Refusal

pytestmark = pytest.mark.skipif("PACHD_ADDRESS" in os.environ, reason="the files of localpachd's own dump")
SECRET = "hunter2 and\nanother line"


def unpacked(data: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        return {each.name: read(archive, each) for each in archive}


def read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    content = archive.extractfile(member)
    assert content is not None
    return content.read().decode()


def files(chunks: Iterable[debug_pb2.DumpChunk]) -> dict[str, str]:
    return unpacked(b"".join(each.content.content for each in chunks))


@pytest.fixture
def pipeline(client: Client, place: Place, pfs: MakeInput) -> Iterator[str]:
    """A pipeline with two finished jobs; the code of the last one prints a secret."""
    secret = place.unique("secret")
    client.create_secret(secret, {"key": SECRET})
    repo = place.repo("source")
    uses = [pps_pb2.SecretMount(name=secret, key="key", env_var="SAID")]
    transform = pps_pb2.Transform(env={"MY_TOKEN": "of a variable", "PLAIN": "visible value"}, secrets=uses)
    name = place.pipeline('echo "it is $SAID, $MY_TOKEN"', input=pfs(repo), transform=transform)
    place.job(name, place.put(repo, a="1"))
    yield name
    client.delete_secret(secret)


def test_a_dump_has_the_history_logs_and_state_of_everything(client: Client, pipeline: str) -> None:
    chunks = list(client.dump())
    assert (chunks[0].progress.progress, chunks[0].content.content) == (1, b"")
    last = {each.progress.task: each.progress for each in chunks if each.HasField("progress")}
    assert all(each.progress == each.total for each in last.values())
    found = files(chunks)
    assert not [name for name in found if name.endswith("error.txt")]
    of = f"pipelines/default/{pipeline}"
    assert json.loads(found[f"{of}/spec.json"])["pipeline"]["name"] == pipeline
    assert found[f"{of}/jobs.json"].count('"state": "JOB_SUCCESS"') == 2
    assert found[f"{of}/commits.json"].count('"finished"') == 2
    assert "state: PIPELINE_RUNNING" in found[f"{of}/describe.txt"]
    lines = [json.loads(line) for line in found[f"{of}/logs.txt"].splitlines()]
    assert {"JOB_SUCCESS"} < {line["message"] for line in lines if line.get("master")}
    (sources,) = [name for name in found if name.startswith("source-repos/default/source")]
    assert '"kind": "USER"' in found[sources]
    assert json.loads(found["database/tables.json"])["jobs"]["rows"] >= 1
    assert json.loads(found["database/files.json"])["pachd.sqlite"]["bytes"] > 0
    assert found["pachd/localpachd/pachd/version.txt"].startswith("2.7.8")
    assert "grpcio " in found["pachd/localpachd/pachd/versions.txt"]
    assert "option root: " in found["pachd/pods/localpachd/describe.txt"]
    assert "VmRSS" in found["pachd/pods/localpachd/pachd/heap"]
    assert "Thread" in found["pachd/pods/localpachd/pachd/goroutine"]


def test_a_dump_says_what_each_worker_is_doing(client: Client, place: Place, pfs: MakeInput) -> None:
    repo = place.repo()
    name = place.pipeline("echo begun; sleep 60", input=pfs(repo))
    place.put(repo, a="1")
    assert any(line.message == "begun" for line in client.get_pipeline_logs(name, follow=True))
    app = debug_pb2.App(name=f"default/{name}", pipeline=debug_pb2.Pipeline(project="default", name=name))
    (text,) = files(client.dump(system=debug_pb2.System(describes=[app]))).values()
    assert f"default-{name}-v1-0 has worked on /a for " in text


def test_a_dump_has_no_secrets(client: Client, pipeline: str) -> None:
    found = files(client.dump())
    said = [json.loads(line)["message"] for line in found[f"pipelines/default/{pipeline}/logs.txt"].splitlines()]
    assert [line for line in said if "(hidden)" in line] == ["it is (hidden)", "(hidden), (hidden)"]
    whole = "\n".join(found.values())
    assert "visible value" in whole
    assert not [each for each in (*SECRET.splitlines(), "of a variable") if each in whole]


def test_a_dump_has_only_what_is_asked_for(client: Client, pipeline: str) -> None:
    asked = debug_pb2.Pipeline(project="default", name=pipeline)
    assert {name.rpartition("/")[0] for name in files(client.dump(pipelines=[asked]))} == {
        f"pipelines/default/{pipeline}"
    }
    assert files(client.dump(system=debug_pb2.System(version=True))).keys() == {
        "pachd/localpachd/pachd/version.txt", "pachd/localpachd/pachd/versions.txt"
    }  # fmt: skip


def test_a_failure_leaves_a_note_and_the_rest(client: Client, pipeline: str) -> None:
    asked = [debug_pb2.Pipeline(project="default", name=each) for each in ("../no-such", pipeline)]
    found = files(client.dump(pipelines=asked))
    assert "not found" in found["pipelines/default/.._no-such/error.txt"]
    assert f"pipelines/default/{pipeline}/jobs.json" in found
    stub = debug_pb2_grpc.DebugStub(client._channel)
    notes = files(stub.DumpV2(debug_pb2.DumpV2Request(pipelines=asked, timeout=Duration(nanos=1))))
    assert set(notes.values()) == {"the time for the dump was over\n"}


def test_refusals(client: Client, refusal: Refusal) -> None:
    app = debug_pb2.App(name="pachd", pods=[debug_pb2.Pod(name="x")])
    text = 'Requested pod "x" of app "pachd" not found'
    assert refusal(client.dump, system=debug_pb2.System(logs=[app])) == (grpc.StatusCode.UNKNOWN, text)
    stub = debug_pb2_grpc.DebugStub(client._channel)
    assert refusal(stub.Dump, debug_pb2.DumpRequest()) == (
        grpc.StatusCode.UNIMPLEMENTED, "Dump gRPC is deprecated in favor of DumpV2",
    )  # fmt: skip
    level = debug_pb2.SetLogLevelRequest
    for request, said in (
        (level(), "no level provided"),
        (level(pachyderm=level.OFF), "cannot set log level to OFF"),
        (level(grpc=level.UNKNOWN), "cannot set grpc log level to UNKNOWN"),
    ):
        assert refusal(stub.SetLogLevel, request) == (grpc.StatusCode.INVALID_ARGUMENT, said)


def test_profiles_and_the_program(client: Client) -> None:
    taken = unpacked(b"".join(client.profile_cpu(Duration(nanos=200_000_000))))
    assert taken.keys() == {"cpu"}
    program = unpacked(b"".join(client.binary()))
    assert "class DebugServicer" in program["localpachd/api/server/debug_servicer.py"]
    assert "python-pachyderm " in program["versions.txt"]


def test_the_level_of_the_log_is_set_for_a_while(client: Client) -> None:
    level = debug_pb2.SetLogLevelRequest
    stub = debug_pb2_grpc.DebugStub(client._channel)
    asked = level(grpc=level.DEBUG, duration=Duration(seconds=1))
    assert stub.SetLogLevel(asked).affected_pods == ["localpachd"]
    client.list_project()
    lines = log_of_the_server(client)
    assert any("pfs_v2.API/ListProject ended after" in line for line in lines)
    assert any(line.endswith("the level of localpachd.calls is the usual one again") for line in lines)


def log_of_the_server(client: Client) -> Iterator[str]:
    """The lines of the server's log, old and new."""
    return (line.message for line in client.get_pipeline_logs("", follow=True))
