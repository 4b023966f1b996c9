"""Asking a cluster before deploying: an API server over HTTP, a server other than localpachd, and the command."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.checks.spec_graph import COMMUNITY_PIPELINES
from pipelines.client.deployment import deployment
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.cluster import preflight
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import FlawLevel
from tests.command import Command, CommandResult
from tests.pipelines.cluster.kube_answers import node, pod
from tests.pipelines.stand_ins import SpecFiles

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
PACHD = {
    "metadata": {"name": "pachd-0", "namespace": "pach"},
    "spec": {
        "nodeName": "plain",
        "containers": [{"name": "pachd", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}],
        "initContainers": [{"name": "wait-for-bucket", "resources": {}}],
    },
    "status": {"phase": "Running"},
}
QUOTA = {"metadata": {"name": "team"}, "status": {"hard": {"requests.cpu": "1", "pods": "9"}, "used": {"pods": "9"}}}
ANSWERS = {
    "/api/v1/nodes": [
        node("plain", images=[{"names": ["docker.io/library/shell:1"], "sizeBytes": 1}]),
        node("gpu", gpus=1, taints=[TAINT]),
        node("away", ready=False, gpus=1),
        node("closed", gpus=1, unschedulable=True),
    ],
    "/api/v1/namespaces/pach/pods": [PACHD],
    "/api/v1/pods": [PACHD],
    "/api/v1/namespaces/pach/resourcequotas": [QUOTA],
}

ServeApi = Callable[[Any], str]

pytestmark = pytest.mark.late_alone


def written(directory: Path, **fields: Any) -> SpecDraft:
    usual: dict[str, Any] = {
        "input": {"pfs": {"repo": "images", "glob": "/*"}},
        "resource_requests": {"cpu": 0.5, "memory": "1Gi"},
    }
    return SpecFiles(directory / "specs").draft(**usual | fields)


def test_obstacles_are_reported_and_localpachds_are_not(
    serve_api: ServeApi, like_a_cluster: Connection, connection: Connection, tmp_path: Path
) -> None:
    serve_api({**ANSWERS, "/api/v1/namespaces/pach/resourcequotas": []})
    wanting = written(tmp_path, resource_limits={"gpu": {"type": "nvidia.com/gpu", "number": 1}})
    (finding,) = preflight.find_obstacles(like_a_cluster, [wanting])
    assert finding.flaw.level == FlawLevel.WARNING
    assert finding.flaw.field == ("tolerations",)
    assert "gpu repel it by the taint nvidia.com/gpu=present:NoSchedule" in finding.flaw.why
    assert not preflight.find_obstacles(connection, [wanting])


def worker(name: str, project: str, cpu: str, phase: str = "Running") -> dict[str, Any]:
    return dict(pod(f"{project}-{name}-v1-x", name, "plain", phase, project=project, requests={"cpu": cpu}))


def test_workers_find_room_beside_other_pods_but_not_beside_those_that_they_replace(
    serve_api: ServeApi, like_a_cluster: Connection, tmp_path: Path
) -> None:
    project = like_a_cluster.project
    scaling = written(tmp_path, name="scaling", autoscaling=True)
    deployment.deploy(like_a_cluster, [scaling.spec()])
    many = written(tmp_path, resource_requests={"cpu": 2, "memory": "1Gi"}, parallelism_spec={"constant": 3})
    fitting = [
        PACHD,
        worker("p", project, "4"),
        worker("scaling", project, "4"),
        worker("ended", project, "4", phase="Succeeded"),
    ]
    full = [*fitting, worker("p", "other", "1500m")]
    unlimited = {**ANSWERS, "/api/v1/namespaces/pach/resourcequotas": []}
    serve_api({**unlimited, "/api/v1/pods": fitting})
    assert not preflight.find_obstacles(like_a_cluster, [many])
    serve_api({**unlimited, "/api/v1/pods": full})
    (finding,) = preflight.find_obstacles(like_a_cluster, [many])
    assert finding.flaw.level == FlawLevel.WARNING
    assert finding.flaw.why == (
        "3 permanent workers request cpu 6, memory 3.179Gi together, next to other pods plain has "
        "cpu 5.41, memory 26Gi left: no room for 1 of p"
    )
    serve_api({path: each for path, each in unlimited.items() if path != "/api/v1/pods"})
    (finding,) = preflight.find_obstacles(like_a_cluster, [many])
    assert finding.flaw.level == FlawLevel.NOTE
    assert finding.flaw.why.startswith("not checked: whether all workers fit at once")


def test_a_different_cluster_is_not_asked(serve_api: ServeApi, like_a_cluster: Connection, tmp_path: Path) -> None:
    serve_api({**ANSWERS, "/api/v1/namespaces/pach/pods": []})
    (finding,) = preflight.find_obstacles(like_a_cluster, [written(tmp_path)])
    assert finding.flaw.level == FlawLevel.NOTE
    assert finding.flaw.why.startswith("unchecked: ")
    assert "kubectl's cluster has no Pachyderm in the namespace pach" in finding.flaw.why


def deploy(connection: Connection, directory: Path) -> CommandResult:
    config = Path(os.environ["PACH_CONFIG"])
    config.parent.mkdir(exist_ok=True)
    context = {"pachd_address": connection.address, "project": connection.project, "namespace": "pach"}
    config.write_text(json.dumps({"v2": {"active_context": "test", "contexts": {"test": context}}}))
    return Command(directory).run("deploy", "--specs", "specs")


def test_the_command_reports_obstacles_before_it_sends_anything(
    serve_api: ServeApi, like_a_cluster: Connection, tmp_path: Path
) -> None:
    serve_api(ANSWERS)
    written(tmp_path, resource_requests={"cpu": 2, "memory": "1Gi"})
    done = deploy(like_a_cluster, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("lookalike: nothing was deployed: fix the errors")
    assert done.stdout == (
        f"writing to {like_a_cluster.address}, pachctl's context test, project {like_a_cluster.project}\n"
        "error specs/p.json:17 resource_requests\n"
        "  the quota team allows 1 of requests.cpu in all, and one worker needs 2: it would never be created\n"
        "  → request less, or have the quota raised\n"
        "warning specs/p.json parallelism_spec\n"
        "  the quota team leaves 0 of 9 pods, and all workers together need 1: some would wait for others\n"
        "  → have the quota raised\n"
        "1 specification checked: 1 error, 1 warning\n"
    )
    assert not ProjectJobs(like_a_cluster).pipelines()


def test_a_server_without_a_key_takes_no_more_pipelines(
    serve_api: ServeApi, like_a_cluster: Connection, tmp_path: Path
) -> None:
    serve_api({**ANSWERS, "/api/v1/namespaces/pach/resourcequotas": []})
    many = [
        replace(written(tmp_path), document={"pipeline": {"name": f"p{number}"}})
        for number in range(COMMUNITY_PIPELINES + 1)
    ]
    found = preflight.find_obstacles(like_a_cluster, many)
    assert [each.flaw.level for each in found if each.flaw.rule == "pipelines"] == [FlawLevel.ERROR]
    assert not [each for each in preflight.find_obstacles(like_a_cluster, many[:1]) if each.flaw.rule == "pipelines"]
