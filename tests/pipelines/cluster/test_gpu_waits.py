"""The waits for GPUs: their state and reason, from Pachyderm, from a cluster, and from localpachd's machine."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.cluster import gpu_waits, pipeline_status
from pipelines.cluster.gpu_holders import GpuHolder, GpuHoldings, GpuMachine, PendingWorker
from pipelines.cluster.gpu_waits import GpuDemand, GpuWaits, PipelineWait
from tests.conditions import until
from tests.pipelines.cluster import kube_answers
from tests.pipelines.stand_ins import deploy_specs, gpu_spec
from tests.servers import StartPachd

SHORT = (
    "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available: 1 No preemption "
    "victims found for incoming pod.."
)
WAITING, BUSY, STANDING = GpuDemand(1, True), GpuDemand(1, True, busy=True), GpuDemand(1, False)

pytestmark = pytest.mark.late_alone


def node(total: int, *holders: str, status: str = "Ready") -> GpuMachine:
    held = [GpuHolder(each if "/" in each else "", f"ns/{each.rpartition('/')[2]}", 1) for each in holders]
    return GpuMachine("n", status, "", total, tuple(held))


def pending(*pipelines: str, coming: bool = False) -> tuple[PendingWorker, ...]:
    return tuple(PendingWorker(f"p/{each}", coming) for each in pipelines)


def held_by(*holders: str) -> GpuHoldings:
    """A node whose GPUs are held, one by each, and a worker of index that has none."""
    return GpuHoldings([node(len(holders), *holders)], pending("index"))


INDEX, WITH_FEATURES = {"index": WAITING}, {"index": WAITING, "features": BUSY}
STANDING_BY = {"index": WAITING, "features": STANDING}
HELD = "waiting for a GPU, held by"
NONE_FREE = "waiting for a GPU, which no node has to spare"
KEPT = 'waiting for a GPU, kept between jobs by features: set "autoscaling": true there, or add a node with GPUs'
NO_GPUS = "no node of the cluster has a GPU: add a node with GPUs, or deploy with --overlay cpu"
TOO_MANY = (
    "a worker requests 2 GPUs, and no node has more than 1: lower resource_limits.gpu.number, or add a larger node"
)
ADDED = "waiting for a node with a GPU, which the cluster is adding"
NOT_READY = "waiting for a node with a GPU: not ready are n"


@pytest.mark.parametrize(
    ("holdings", "wishes", "state", "text"),
    [
        (held_by("p/features"), WITH_FEATURES, "waiting", f"{HELD} features"),
        (held_by("q/other", "notebook"), INDEX, "waiting", f"{HELD} q/other, ns/notebook outside Pachyderm"),
        (held_by("p/a", "p/b", "p/c", "p/d", "p/e"), INDEX, "waiting", f"{HELD} a, b, c and 2 more"),
        (held_by("p/features"), STANDING_BY, "crashing", KEPT),
        (held_by("p/features", "p/search"), {**STANDING_BY, "search": BUSY}, "waiting", f"{HELD} features, search"),
        (GpuHoldings([], pending("index")), INDEX, "crashing", NO_GPUS),
        (GpuHoldings([node(1, status="NotReady")], pending("index")), INDEX, "waiting", NOT_READY),
        (GpuHoldings([node(1), node(1)], pending("index")), {"index": GpuDemand(2, True)}, "crashing", TOO_MANY),
        (GpuHoldings([], pending("index", coming=True)), INDEX, "waiting", ADDED),
        (
            held_by("p/index", "p/features"),
            {"index": BUSY, "features": BUSY},
            "running",
            f"1 worker more {HELD} features",
        ),
        (GpuHoldings([node(1, "p/index")]), {"index": BUSY}, "running", ""),
        (None, WITH_FEATURES, "waiting", f"{HELD} features"),
        (None, STANDING_BY, "waiting", f"{HELD} features"),
        (None, {"index": WAITING, "features": WAITING}, "waiting", NONE_FREE),
        (None, {"index": BUSY}, "running", ""),
        (None, {"index": GpuDemand(1, True, idle=True), "features": BUSY}, "standby", ""),
        (None, {"index": GpuDemand(1, False, idle=True), "features": BUSY}, "waiting", f"{HELD} features"),
        # kubectl's cluster is another one
        (GpuHoldings([node(1, "p/other")], pending("other")), WITH_FEATURES, "waiting", f"{HELD} features"),
    ],
)
def test_waits_on_a_cluster(
    holdings: GpuHoldings | None, wishes: Mapping[str, GpuDemand], state: str, text: str
) -> None:
    assert gpu_waits.on_cluster(holdings, "p", "index", wishes) == PipelineWait(state, text)


def test_a_free_gpu_is_not_the_reason() -> None:
    """A taint repels the worker from the node with a GPU, and the other nodes have none."""
    assert gpu_waits.on_cluster(GpuHoldings([node(1)], pending("index")), "p", "index", {"index": WAITING}) is None


@pytest.mark.parametrize(
    ("machine", "wish", "crashing", "expected"),
    [
        (node(1, "p/features"), BUSY, False, "waiting for a GPU, held by p/features"),
        (node(1, "p/features"), WAITING, False, None),
        (node(2, "p/features"), BUSY, False, None),
        (node(1, "p/index"), BUSY, False, None),
        (node(0), BUSY, False, None),
        (
            node(0),
            BUSY,
            True,
            "a worker requests 1 GPU, this machine has no GPU: start the server without --strict-gpus to compute on "
            "the CPU",
        ),
    ],
)
def test_waits_on_a_machine(machine: GpuMachine, wish: GpuDemand, crashing: bool, expected: str | None) -> None:
    found = gpu_waits.on_machine(machine, "p/index", wish, crashing)
    assert (found.text if found else None) == expected


def info(name: str, state: str, reason: str = "") -> Any:
    found = pps_pb2.PipelineInfo(state=pps_pb2.PipelineState.Value(f"PIPELINE_{state}"), reason=reason)
    found.pipeline.name = name
    found.details.autoscaling = True
    found.details.resource_limits.gpu.number = 1
    found.details.resource_limits.gpu.type = "nvidia.com/gpu"
    return found


def test_a_cluster_is_asked_for_the_holders(
    serve_api: Callable[[Any], str], kubeconfig: Callable[[str, str], None], like_a_cluster: Connection
) -> None:
    project = like_a_cluster.project
    answers = {
        "/api/v1/nodes": [kube_answers.node("gpu-a", gpus=1)],
        "/api/v1/pods": [
            kube_answers.pod("features-v1-x", "features", "gpu-a", gpus=1, project=project),
            kube_answers.pod("index-v1-x", "index", phase="Pending", gpus=1, project=project),
        ],
        "/api/v1/events": [],
    }
    infos = {
        "features": info("features", "RUNNING"),
        "index": info("index", "CRASHING", SHORT),
        "render": info("render", "CRASHING", "ImagePullBackOff"),
    }
    serve_api(answers)
    held = {"index": PipelineWait("waiting", "waiting for a GPU, held by features")}
    assert GpuWaits(like_a_cluster).look(infos, {"features"}) == held
    scaling = kube_answers.event("Pod", "index-v1-x", "TriggeredScaleUp")
    serve_api({**answers, "/api/v1/nodes": [], "/api/v1/events": [scaling]})
    (wait,) = GpuWaits(like_a_cluster).look(infos, {"features"}).values()
    assert wait == PipelineWait("waiting", "waiting for a node with a GPU, which the cluster is adding")
    del answers["/api/v1/events"]  # forbidden
    serve_api(answers)
    assert GpuWaits(like_a_cluster).look(infos, {"features"}) == held
    kubeconfig("http://127.0.0.1:9", "pach")
    assert GpuWaits(like_a_cluster).look(infos, {"features"}) == held
    assert GpuWaits(like_a_cluster).look({**infos, "index": info("index", "RUNNING")}, {"features"}) == {}


NODES = "0/3 nodes are available: "
MOMENT = PipelineWait("waiting", "waiting for Kubernetes to place its worker: a node has GPUs to spare")


def test_a_gpu_that_changes_hands_is_no_crash(serve_api: Callable[[Any], str], like_a_cluster: Connection) -> None:
    """The holder has given it back, and Kubernetes' last reason of the next worker is still the shortage."""
    worker = kube_answers.pod("index-v1-x", "index", phase="Pending", gpus=1, project=like_a_cluster.project)
    answers = {
        "/api/v1/nodes": [kube_answers.node("gpu-a", gpus=1)], "/api/v1/pods": [worker], "/api/v1/events": []
    }  # fmt: skip
    serve_api(answers)
    for reason, expected in (
        (SHORT, MOMENT),
        (f"{NODES}3 Insufficient nvidia.com/gpu.", MOMENT),
        (f"FailedScheduling: {NODES}3 Insufficient nvidia.com/gpu.", MOMENT),
        (f"{NODES}1 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint {{a: b}}.", None),
        (f"{NODES}3 Insufficient memory, 3 Insufficient nvidia.com/gpu.", None),
    ):
        infos = {"features": info("features", "RUNNING"), "index": info("index", "CRASHING", reason)}
        assert GpuWaits(like_a_cluster).look(infos, {"index"}).get("index") == expected, reason


def test_pipelines_that_take_turns_on_one_machine(start_pachd: StartPachd, tmp_path: Path) -> None:
    connection = connect(ServerTarget(start_pachd(tmp_path / "root", "--gpus", "1").address))
    gate, names = tmp_path / "gate", ["first", "second"]
    none = Job("", "", "", 0, 0, 0, 0, None, "")
    deploy_specs(connection, *(gpu_spec(name, gate) for name in names))
    commit = Repository(connection, "in").write([PutFile("/a", b"")])

    def states() -> Sequence[pipeline_status.PipelineStatus]:
        found = pipeline_status.read(connection, names).pipelines
        return sorted(found, key=lambda each: each.state)

    def turns() -> Sequence[pipeline_status.PipelineStatus]:
        seen = states()
        busy = seen[1].state == "waiting" and any(each.paths for each in (seen[0].job or none).busy)
        return seen if busy else []

    running, waiting = until(turns)
    assert (running.state, running.reason) == ("running", "")
    assert waiting.reason == f"waiting for a GPU, held by {running.name}"
    gate.touch()
    ended = ProjectJobs(connection).watch([commit], lambda jobs, infos: None)
    assert {(job.state, job.busy) for job in ended} == {("success", ())}
    assert {each.reason for each in states()} == {""}


def test_a_machine_that_never_suffices(start_pachd: StartPachd, tmp_path: Path) -> None:
    connection = connect(ServerTarget(start_pachd(tmp_path / "root", "--gpus", "0", "--strict-gpus").address))
    deploy_specs(connection, gpu_spec("first", tmp_path / "gate"))

    def crashing() -> str:
        (seen,) = pipeline_status.read(connection, ["first"]).pipelines
        return seen.reason if seen.state == "crashing" else ""

    assert until(crashing).startswith("a worker requests 1 GPU, this machine has no GPU: start the server without")
