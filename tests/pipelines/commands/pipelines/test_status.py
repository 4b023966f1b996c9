"""The head of the status: the facts about a library, for people and as JSON."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.backbones import describe_commit
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from stages.backbone.backbone_spec import TEXT_FILE, BackboneSpec, WeightsOrigin, format_spec
from stages.datum import visible_gpus
from tests.command import Command
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.grpc_proxy import passed_on
from tests.pipelines.stand_ins import deploy_specs, shell_spec, wait_for
from tests.servers import OwnPort

pytestmark = pytest.mark.late_alone

NET = BackboneSpec("net-9", 160, "avg", 1280, 32, "float32", WeightsOrigin("here", "0" * 64), "a" * 64)

INDEX = rf"""
for segment in 0 1; do
  mkdir -p "${{LOCALPACHD_PFS:-/pfs}}/out/$segment"
  echo '{{"count": 1200, "model": "{NET.sha256}"}}' > "${{LOCALPACHD_PFS:-/pfs}}/out/$segment/index.json"
done
"""


def pipeline(name: str, **members: Any) -> dict[str, Any]:
    transform = {"image": "shell:1", "cmd": ["sh"], "stdin": INDEX.splitlines(), "env": {"K": "4"}}
    return shell_spec(name, "images", glob="/", **{"transform": transform, **members})


@pytest.fixture
def library(as_user: Connection, preprocessing: Connection, wait_for_jobs: WaitForJobs) -> Connection:
    """A library with an index, a model, a query that was rejected, and a `render` of four neighbours."""
    deploy_specs(as_user, pipeline("index"), pipeline("render"))
    as_user.client.create_repo("models", project_name=as_user.project)
    Repository(as_user, "models").write([PutFile("/backbone.json", format_spec(NET).encode())])
    wait_for_jobs(Repository(as_user, "images").write([PutFile("/a.png", b"")]))
    wait_for_jobs(Repository(as_user, "queries").write([PutFile("/one.png", b""), PutFile("/two/b.png", b"")]))
    return as_user


def test_the_status_begins_with_the_facts(library: Connection, command: Command) -> None:
    said = command.says("status")
    head, _, _ = said.partition("\n\n")
    facts = {line.split()[0]: line.split(maxsplit=1)[1] for line in head.splitlines()}
    assert facts["server"] == f"{library.address}, project {library.project}"
    assert facts["pictures"] == "2,400 in the index, and 1 file rejected, see below"
    assert facts["queries"] == "2 entries, and 2 files rejected, see below"
    assert facts["model"].startswith("net-9, 160 px, but pictures are made ")
    assert facts["model"].endswith(", K=4")
    assert facts["disk"].endswith(" in all repos")
    assert facts["jobs"] == "none"
    done = command.run("status", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["server"] == {"address": library.address, "project": library.project}
    assert (told["library"]["pictures"], told["library"]["queries"]) == (2400, 2)
    assert told["library"]["model"] == {
        "name": "net-9", "image_size": 160, "dimension": 1280, "precision": "float32", "replacing": False,
        "words": False
    }  # fmt: skip
    assert told["library"]["neighbours"] == 4
    assert told["jobs"] == {"running": 0, "waiting": 0}
    assert [each["repo"] for each in told["rejected"]] == ["images", "queries", "queries"]
    assert [each["name"] for each in told["pipelines"]] == ["preprocess-queries", "preprocess", "index", "render"]


def test_a_model_with_a_text_tower_is_told(library: Connection, command: Command) -> None:
    models = Repository(library, "models")
    bare = describe_commit(library, models.write([PutFile(f"/{TEXT_FILE}.old", b"no tower")]))
    assert (bare, "finds words" in command.says("status")) == (f"{NET.described} {NET.sha256[:8]}", False)
    words = describe_commit(library, models.write([PutFile(f"/{TEXT_FILE}", b"a tower")]))
    assert re.fullmatch(f"{re.escape(bare)} with words [0-9a-f]{{8}}", words)
    assert ", K=4, finds words\n" in command.says("status")
    assert json.loads(command.says("status", "--json"))["library"]["model"]["words"] is True


def test_a_model_that_replaces_that_of_the_index_is_told(library: Connection, command: Command) -> None:
    other = format_spec(NET).replace(NET.sha256, "b" * 64).replace("net-9", "net-10")
    Repository(library, "models").write([PutFile("/backbone.json", other.encode())])
    assert "; the index still has another model's vectors\n" in command.says("status")
    Repository(library, "models").write([PutFile("/backbone.json", b"damaged")])
    assert "model     none: `lookalike model push" in command.says("status")


def test_the_addresses_of_services_are_told(as_user: Connection, command: Command, own_port: OwnPort) -> None:
    as_user.client.create_repo("images", project_name=as_user.project)
    port = own_port()
    service = {"internal_port": port, "external_port": port}
    transform = {"image": "shell:1", "cmd": ["sleep", "60"]}
    deploy_specs(as_user, pipeline("serve", service=service, transform=transform))
    assert f"open      http://127.0.0.1:{port}\n" in command.says("status")


def test_a_service_waits_behind_none_of_its_jobs(as_user: Connection, command: Command, own_port: OwnPort) -> None:
    """The older job ends for the newer one, and its datum is never done."""
    images = Repository(as_user, "images")
    as_user.client.create_repo("images", project_name=as_user.project)
    written = images.write([PutFile("/a", b"a")])
    list(as_user.client.wait_commit(written))
    port = own_port()
    service = {"internal_port": port, "external_port": port}
    transform = {"image": "shell:1", "cmd": ["sleep", "60"]}
    deploy_specs(as_user, pipeline("serve", service=service, transform=transform))
    with as_user.client.commit("images", "master", project_name=as_user.project):
        states = [job.state for job in ProjectJobs(as_user).last("serve", 2)]
        said = command.says("status")
    assert len(states) == 2
    assert "waits behind" not in said
    assert "serve is at work" not in said


def test_calls_that_do_not_depend_on_each_other_are_made_at_once(library: Connection, command: Command) -> None:
    """With a server as far away as a cluster."""
    limits = {"gpu": {"type": "nvidia.com/gpu", "number": 1}}
    deploy_specs(library, *(shell_spec(f"more-{at}", "images", resource_limits=limits) for at in range(8)))
    for question in ("status", "jobs"):
        calls: list[str] = []
        with passed_on(library, heard=calls.append, latency=0.2) as far:
            began = time.monotonic()
            command.says(question, "--address", far.address)
            assert time.monotonic() - began < 0.2 * len(calls) * 2 / 3, (question, calls)


def test_the_index_of_a_job_that_has_ended_is_counted(
    as_user: Connection, command: Command, wait_for_jobs: WaitForJobs, tmp_path: Path
) -> None:
    """Also if the job ends while the status is read."""
    gate = tmp_path / "gate"
    transform = {"image": "shell:1", "cmd": ["sh"], "stdin": [wait_for(gate), *INDEX.splitlines()]}
    deploy_specs(as_user, pipeline("index", transform=transform))
    commit = Repository(as_user, "images").write([PutFile("/a.png", b"")])

    def heard(method: str) -> None:
        if method == "GetFileTAR" and not gate.exists():
            gate.touch()
            wait_for_jobs(commit)

    with passed_on(as_user, heard=heard) as through:
        told = json.loads(command.says("status", "--json", "--address", through.address))
    (index,) = (each for each in told["pipelines"] if each["name"] == "index")
    assert index["job"]["state"] != "success" or told["library"]["pictures"] == 2400


def test_a_gpu_that_a_stage_does_not_use_is_told(
    as_user: Connection, command: Command, wait_for_jobs: WaitForJobs
) -> None:
    """With the newest job of a pipeline that requests GPUs, once for each reason; the lines of others are not read."""
    why = visible_gpus.notice(
        "it is not used: cuml computes distances that are too large. Searching on the CPU instead"
    )
    as_user.client.create_repo("images", project_name=as_user.project)
    gpus = {"resource_limits": {"gpu": {"type": "nvidia.com/gpu", "number": 1}}}
    for name, wants in (("search", gpus), ("render", {})):
        transform = {"image": "shell:1", "cmd": ["sh"], "stdin": ["echo 3 of 4 queries", *[f"echo '{why}'"] * 2]}
        deploy_specs(as_user, pipeline(name, transform=transform, **wants))
    wait_for_jobs(Repository(as_user, "images").write([PutFile("/a.png", b"")]))
    said = [line for line in command.says("status").splitlines() if "not used" in line]
    assert said == [f"search, the {why}"]
    told = {each["name"]: each["on_gpus"] for each in json.loads(command.says("status", "--json"))["pipelines"]}
    assert told == {"search": [why.removeprefix("GPU: ")], "render": []}
