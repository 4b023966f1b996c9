"""The holders of GPUs: localpachd's leases, and a cluster's nodes and pods as an API server reports them; and
Kubernetes' reasons why workers cannot run. The API server is a real HTTP server with fixed answers."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.cluster import gpu_holders, kube_client, kube_objects, pipeline_status
from pipelines.cluster.gpu_holders import GpuHolder, GpuHoldings, GpuMachine, PendingWorker
from pipelines.commands.kit import display
from pipelines.errors import LookalikeError
from tests.command import Command
from tests.pipelines.cluster.kube_answers import event, labels, node, pod
from tests.pipelines.stand_ins import deploy_specs, gpu_spec
from tests.servers import StartPachd


def container(ready: bool = False, **fields: Any) -> dict[str, Any]:
    return {"name": "user", "ready": ready, "image": "i", "imageID": "", "restartCount": 0, **fields}


def unschedulable(message: str) -> dict[str, str]:
    return {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}


REPELLED = (
    "workers of search cannot start: every node repels its worker by the taint nvidia.com/gpu: tolerate it with an "
    "overlay, see `lookalike check`"
)
UNSCHEDULABLE = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
QUOTA = 'pods "default-index-v1-x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1'
PULLING = 'Back-off pulling image "registry/lookalike-rapids:0.1.0"'

NODES = [node("plain"), node("gpu-b", ready=False, gpus=1), node("gpu-a", gpus=4)]
NODES[2]["metadata"]["labels"]["nvidia.com/gpu.product"] = "Tesla-T4"
PODS = [
    pod("default-features-v2-abcde", "features", on="gpu-a", gpus=2, containerStatuses=[container(ready=True)]),
    pod("notebook", on="gpu-a", gpus=1),
    pod("finished", on="gpu-a", phase="Succeeded", gpus=1),
    pod("default-search-v1-fghij", "search", phase="Pending", gpus=1, conditions=[unschedulable(UNSCHEDULABLE)]),
    pod(
        "default-render-v1-klmno",
        "render",
        on="plain",
        phase="Pending",
        containerStatuses=[container(state={"waiting": {"reason": "ImagePullBackOff", "message": PULLING}})],
    ),
]
CONTROLLERS = [
    {
        "metadata": {"name": f"default-{name}-v1", "namespace": "pach", "labels": labels(name)},
        "spec": {"replicas": wanted},
        "status": {"replicas": there, "readyReplicas": there},
    }
    for name, wanted, there in (("index", 1, 0), ("features", 1, 1), ("preprocess", 0, 0))
]
EVENTS = [
    event("ReplicationController", "default-index-v1", "FailedCreate", QUOTA),
    event("ReplicationController", "default-index-v1", "FailedCreate", QUOTA),
    event("ReplicationController", "default-features-v1", "FailedCreate", "until it had what it needs"),
    event("ReplicationController", "default-preprocess-v1", "FailedCreate", "until it had nothing to do"),
    event("Pod", "default-search-v1-fghij", "FailedScheduling", UNSCHEDULABLE),
    event("Pod", "default-features-v2-abcde", "Unhealthy", "long ago"),
    event("Pod", "somebody-else", "BackOff", "not ours"),
]
ANSWERS = {
    "/api/v1/nodes": NODES,
    "/api/v1/pods": PODS,
    "/api/v1/namespaces/pach/pods": [each for each in PODS if each["metadata"]["namespace"] == "pach"],
    "/api/v1/namespaces/pach/replicationcontrollers": CONTROLLERS,
    "/api/v1/namespaces/pach/events": EVENTS,
}


@pytest.fixture
def api_server(serve_api: Callable[[Any], str]) -> str:
    """The address of an API server, which is the one that kubectl would talk to."""
    return serve_api(ANSWERS)


def test_a_worker_whose_image_is_pulled_or_that_lacked_memory(serve_api: Callable[[Any], str]) -> None:
    creating = container(state={"waiting": {"reason": "ContainerCreating"}})
    killed = container(lastState={"terminated": {"reason": "OOMKilled", "exitCode": 137}})
    pods = [
        pod(f"{name}-v1", name, on="plain", phase="Pending", containerStatuses=[status])
        for name, status in (("preprocess", creating), ("index", creating), ("search", killed))
    ]
    events = [
        event("Pod", "preprocess-v1", "Pulling", 'Pulling image "team/cpu:1"'),
        event("Pod", "index-v1", "Pulling", 'Pulling image "team/cpu:1"'),
        event("Pod", "index-v1", "Pulled", 'Successfully pulled image "team/cpu:1"'),
    ]
    for each in events:
        each["type"] = "Normal"
    place = "/api/v1/namespaces/pach"
    serve_api({f"{place}/pods": pods, f"{place}/replicationcontrollers": [], f"{place}/events": []})
    assert kube_client.ask("troubles") == {"default/search": ["OOMKilled: exit status 137"]}
    serve_api({f"{place}/pods": pods[:2], f"{place}/replicationcontrollers": [], f"{place}/events": events})
    assert kube_client.ask("troubles")["default/preprocess"] == ['Pulling: Pulling image "team/cpu:1"']


def test_the_reasons_why_workers_wait(api_server: str) -> None:
    expected = {
        "default/search": [f"Unschedulable: {UNSCHEDULABLE}"],
        "default/render": [f"ImagePullBackOff: {PULLING}"],
        "default/index": [f"FailedCreate: {QUOTA}"],
    }
    assert kube_client.ask("troubles") == kube_client.ask("troubles", "pach") == expected


@pytest.mark.parametrize(
    ("reason", "count", "believed"),
    [
        ("Unhealthy", 20, False),
        ("DNSConfigForming", 20, False),
        ("FailedMount", 2, False),
        ("FailedMount", 6, True),
        ("FailedCreatePodSandBox", 6, True),
        ("Failed", 1, True),
    ],
)
def test_a_warning_of_a_starting_worker_is_a_failure_if_kubernetes_gives_up(
    serve_api: Callable[[Any], str], reason: str, count: int, believed: bool
) -> None:
    starting = pod("index-v1", "index", on="plain", phase="Pending", containerStatuses=[container()])
    place = "/api/v1/namespaces/pach"
    told = [event("Pod", "index-v1", reason, "why", count)]
    serve_api({f"{place}/pods": [starting], f"{place}/replicationcontrollers": [], f"{place}/events": told})
    assert kube_client.ask("troubles") == ({"default/index": [f"{reason}: why"]} if believed else {})


def test_a_reason_in_other_words_is_left_out() -> None:
    cause = 'failed to pull and unpack image "docker.io/team/image:1": not found'
    pull, paused = f'Failed: Failed to pull image "team/image:1": {cause}', 'Back-off pulling image "team/image:1"'
    codes = ["Failed: Error: ErrImagePull", "Failed: Error: ImagePullBackOff"]
    assert kube_objects.distinct([f"ErrImagePull: {cause}", pull, *codes]) == [pull]
    assert kube_objects.distinct([f"ImagePullBackOff: {paused}", pull, *codes, f"BackOff: {paused}"]) == [pull]
    assert kube_objects.distinct([f"ImagePullBackOff: {paused}"]) == [f"ImagePullBackOff: {paused}"]
    twice = [f"ImagePullBackOff: {paused}", f"BackOff: {paused}"]
    assert kube_objects.distinct(twice) == twice[:1]
    assert kube_objects.distinct(codes) == codes
    assert kube_objects.distinct(["Failed: cause", "BackOff: cause", "Unhealthy: other"]) == [
        "Failed: cause",
        "Unhealthy: other",
    ]
    unlike = ["Unschedulable: 0/1 nodes are available", "FailedCreate: exceeded quota"]
    assert kube_objects.distinct(unlike) == unlike


def test_missing_permissions_are_one_line(api_server: str) -> None:
    with pytest.raises(LookalikeError, match="refuses the request: .*is forbidden: User cannot list it$"):
        kube_client.ask("troubles", "kube-system")


def test_an_unreachable_cluster_is_one_line(
    kubeconfig: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig("http://127.0.0.1:9", "pach")
    with pytest.raises(LookalikeError, match=r"^the Kubernetes cluster at http://127\.0\.0\.1:9 does not answer: "):
        kube_client.ask("holdings")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(LookalikeError, match=r"^no Kubernetes cluster is configured: .*; kubectl must work here$"):
        kube_client.ask("holdings")


NO_PROGRAM = {"command": "log-in-to-nowhere", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("user", "said"),
    [
        (None, "kubectl's configuration is invalid"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1", **NO_PROGRAM}}, "No such file .*log-in-to-nowhere"),
    ],
    ids=["no object", "a missing program for logging in"],
)
def test_a_configuration_that_does_not_work_is_one_line(
    api_server: str, user: dict[str, Any] | None, said: str
) -> None:
    path = Path(os.environ["KUBECONFIG"])
    changed = json.loads(path.read_text()) | {"users": [{"name": "u", "user": user}]} if user else []
    path.write_text(json.dumps(changed))
    match = f"^no Kubernetes cluster is configured: .*{said}.*; kubectl must work here$"
    with pytest.raises(LookalikeError, match=match):
        kube_client.ask("holdings")


@pytest.fixture
def no_localpachd(stranger: str) -> Iterator[Connection]:
    """A connection to a server that does not lease GPUs, as a real Pachyderm does not."""
    connection = connect(ServerTarget(stranger))
    yield connection
    connection.client._channel.close()


def test_a_cluster_is_told_by_machine(api_server: str, no_localpachd: Connection) -> None:
    held = (GpuHolder("default/features", "pach/default-features-v2-abcde", 2), GpuHolder("", "other/notebook", 1))
    nodes = [GpuMachine("gpu-a", "Ready", "Tesla-T4", 4, held), GpuMachine("gpu-b", "NotReady", "", 1, ())]
    waiting = (PendingWorker("default/search", node_coming=False),)
    assert gpu_holders.read(no_localpachd) == GpuHoldings(nodes, waiting)


def gpus(typed: Command, connection: Connection, *arguments: str) -> list[str]:
    """The output of `lookalike gpus`."""
    typed.environment["PACHD_ADDRESS"] = connection.address
    return [" ".join(line.split()) for line in typed.says("gpus", *arguments).splitlines()]


def test_the_command_shows_a_cluster(
    serve_api: Callable[[Any], str], no_localpachd: Connection, command: Command
) -> None:
    serve_api(ANSWERS)
    assert gpus(command.as_process, no_localpachd) == [
        "node status kind GPUs allocated",
        "gpu-a Ready Tesla-T4 4 3",
        "gpu-b NotReady 1 0",
        "3 of 5 GPUs allocated (60%)",
    ]
    assert gpus(command, no_localpachd, "-d")[1:4] == [
        "gpu-a Ready Tesla-T4 4 3",
        "default/features pach/default-features-v2-abcde 2",
        "outside Pachyderm other/notebook 1",
    ]
    serve_api(ANSWERS | {"/api/v1/nodes": [], "/api/v1/pods": []})
    assert gpus(command, no_localpachd) == [
        "no node of the cluster has GPUs: pipelines that request one wait until such a node joins"
    ]


def test_the_status_of_a_cluster_says_why_workers_wait(
    api_server: str,
    like_a_cluster: Connection,
    connection: Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kubeconfig: Callable[[str, str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    deploy_specs(connection, gpu_spec("search", tmp_path / "gate"))
    taint = "0/3 nodes are available: 1 node(s) had untolerated taint {nvidia.com/gpu: present}."
    for why, held, state, said in [
        (UNSCHEDULABLE, 4, "waiting", "search: waiting for a GPU, held by other/notebook outside Pachyderm"),
        (taint, 0, "running", REPELLED),
    ]:
        conditions = [unschedulable(why)]
        ours = pod("search-v1-x", "search", "", "Pending", 1, connection.project, conditions=conditions)
        monkeypatch.setitem(ANSWERS, "/api/v1/namespaces/pach/pods", [ours])
        monkeypatch.setitem(ANSWERS, "/api/v1/pods", [ours, pod("notebook", on="gpu-a", gpus=held)])
        told = [event("Pod", "search-v1-x", "FailedScheduling", why)]
        monkeypatch.setitem(ANSWERS, "/api/v1/namespaces/pach/events", told)
        seen = pipeline_status.read(like_a_cluster, ["search"])
        assert seen.pipelines[0].state == state
        display.show_status(seen)
        lines = capsys.readouterr().out.splitlines()
        assert [each for each in lines if "cannot start" in each or "waiting for" in each] == [said]
    kubeconfig("http://127.0.0.1:9", "pach")
    unknown = "the reasons for which workers wait are unknown: the Kubernetes cluster at"
    assert unknown in pipeline_status.read(like_a_cluster, ["search"]).notes[0]
    assert pipeline_status.read(connection, ["search"]).pipelines[0].troubles == ()


def test_a_local_server_reports_its_leases(start_pachd: StartPachd, tmp_path: Path, command: Command) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine's own GPUs would be counted")
    connection = connect(ServerTarget(start_pachd(tmp_path / "root", "--gpus", "2").address))
    deploy_specs(connection, gpu_spec("holder", tmp_path / "gate"))
    Repository(connection, "in").write([PutFile("/a", b"")])
    job = ProjectJobs(connection).newest("holder")
    assert job is not None
    held: list[str] = []
    while not held:  # until the datum runs
        held = [line for line in gpus(command, connection, "-d") if line.startswith("holder")]
    assert held == ["holder GPU 0 1"]
    assert gpus(command, connection)[-1] == "1 of 2 GPUs allocated (50%)"
    (tmp_path / "gate").touch()
    ProjectJobs(connection).watch([job.id], lambda jobs, troubles: None)
    assert gpus(command, connection)[-1] == "0 of 2 GPUs allocated (0%)"


def test_a_machine_without_gpus_explains_the_consequence(
    start_pachd: StartPachd, tmp_path: Path, command: Command
) -> None:
    connection = connect(ServerTarget(start_pachd(tmp_path / "root", "--gpus", "0").address))
    deploy_specs(connection, gpu_spec("holder", tmp_path / "gate"))
    assert gpus(command, connection, "-d")[-2:] == [
        "this machine has no GPU: pipelines that request one run on the CPU, or wait if the server has --strict-gpus",
        "holder requests 1 GPU per worker",
    ]
