"""Asking a cluster before deploying: an API server over HTTP, a server that is no localpachd, and the command."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines import cluster, drafts, surroundings
from pipelines.checks.findings import Level
from pipelines.connection import Connection
from pipelines.drafts import Draft
from pipelines.jobs import Jobs


def node(name: str, status: str = "True", images: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "7910m", "memory": "28Gi"},
            "conditions": [{"type": "Ready", "status": status}],
            "images": images,
        },
    }


TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
PACHD = {
    "metadata": {"name": "pachd-0", "namespace": "pach"},
    "spec": {"containers": [{"name": "pachd"}]},
    "status": {},
}
QUOTA = {"metadata": {"name": "team"}, "status": {"hard": {"requests.cpu": "1", "pods": "9"}, "used": {"pods": "9"}}}
ANSWERS = {
    "/api/v1/nodes": [
        node("plain", images=[{"names": ["docker.io/library/shell:1"], "sizeBytes": 1}]),
        node("gpu", taints=[TAINT]),
        node("away", status="False"),
        node("closed", unschedulable=True),
    ],
    "/api/v1/namespaces/pach/pods": [PACHD],
    "/api/v1/namespaces/pach/resourcequotas": [QUOTA],
}

ServeApi = Callable[[Any], str]


def written(directory: Path, **fields: Any) -> Draft:
    document = {
        "pipeline": {"name": "p"},
        "input": {"pfs": {"repo": "images", "glob": "/*"}},
        "transform": {"image": "shell:1", "cmd": ["sh"]},
        "resource_requests": {"cpu": 0.5, "memory": "1Gi"},
        **fields,
    }
    (directory / "specs").mkdir(exist_ok=True)
    (directory / "specs" / "p.json").write_text(json.dumps(document, indent=1))
    return drafts.read(directory / "specs" / "p.json")


def test_what_a_cluster_can_give(serve_api: ServeApi) -> None:
    serve_api(ANSWERS)
    told = cluster.capacity()
    assert (told["namespace"], told["pachyderm"]) == ("pach", True)
    assert [each["name"] for each in told["nodes"]] == ["plain", "gpu"]
    assert told["nodes"][0]["images"] == ["docker.io/library/shell:1"]
    assert told["nodes"][1]["taints"] == [TAINT]
    assert told["quotas"] == [{"name": "team", "hard": {"requests.cpu": "1", "pods": "9"}, "used": {"pods": "9"}}]


def test_what_will_not_go_is_told_and_nothing_of_localpachd(
    serve_api: ServeApi, like_a_cluster: Connection, connection: Connection, tmp_path: Path
) -> None:
    serve_api({**ANSWERS, "/api/v1/namespaces/pach/resourcequotas": []})
    assert not surroundings.look(like_a_cluster, [written(tmp_path)])
    wanting = written(tmp_path, resource_limits={"gpu": {"type": "nvidia.com/gpu", "number": 1}})
    (finding,) = surroundings.look(like_a_cluster, [wanting])
    assert finding.flaw.level == Level.WARNING
    assert "no node of the cluster can give nvidia.com/gpu 1" in finding.flaw.why
    assert not surroundings.look(connection, [wanting])


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({**ANSWERS, "/api/v1/namespaces/pach/pods": []}, "kubectl's cluster has no Pachyderm in the namespace pach"),
        ({}, "the Kubernetes cluster refuses to tell"),
    ],
)
def test_what_cannot_be_asked_is_said(
    serve_api: ServeApi, like_a_cluster: Connection, tmp_path: Path, answers: Any, said: str
) -> None:
    serve_api(answers)
    (finding,) = surroundings.look(like_a_cluster, [written(tmp_path)])
    assert finding.flaw.level == Level.NOTE
    assert finding.flaw.why.startswith("unchecked: ")
    assert said in finding.flaw.why


def deploy(connection: Connection, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    config = Path(os.environ["PACH_CONFIG"])
    config.parent.mkdir(exist_ok=True)
    context = {"pachd_address": connection.address, "project": connection.project, "namespace": "pach"}
    config.write_text(json.dumps({"v2": {"active_context": "test", "contexts": {"test": context}}}))
    return subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "deploy", "--specs", "specs", *arguments],
        cwd=directory,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_says_it_before_anything_is_sent(
    serve_api: ServeApi, like_a_cluster: Connection, tmp_path: Path
) -> None:
    serve_api(ANSWERS)
    written(tmp_path, resource_requests={"cpu": 2, "memory": "1Gi"})
    done = deploy(like_a_cluster, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("lookalike: nothing was deployed: mend the errors")
    assert done.stdout == (
        "error specs/p.json:17 resource_requests\n"
        "  the quota team gives 1 of requests.cpu in all, and one worker needs 2: it would never be created\n"
        "  → ask for less, or have the quota raised\n"
        "warning specs/p.json parallelism_spec\n"
        "  the quota team leaves 0 of 9 pods, and all workers together need 1: some would wait for others\n"
        "  → have the quota raised\n"
        "1 specification checked: 1 error, 1 warning\n"
    )
    assert not Jobs(like_a_cluster).pipelines()
    done = deploy(like_a_cluster, tmp_path, "--force")
    assert done.returncode == 0
    assert "pipeline p: created" in done.stdout
