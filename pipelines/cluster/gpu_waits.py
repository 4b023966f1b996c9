"""The pipelines whose workers wait for GPUs: for those that others hold, which Kubernetes resolves by itself, or for
those that no machine has."""

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.server.connection import Connection
from pipelines.cluster import gpu_holders
from pipelines.cluster.gpu_holders import GpuHoldings, GpuMachine
from pipelines.errors import LookalikeError
from stages.datum.text_format import counted, first_of

_ASK_EVERY = 15.0
"""Seconds between two questions to a cluster: each takes about one."""

_MOST_HOLDERS = 3

_NVIDIA = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class PipelineWait:
    """The true state of a pipeline, "waiting", "running", "standby" or "crashing", and the reason in words, "" for
    none. Pachyderm itself says "crashing" in all four cases, and up to 15 seconds too long."""

    state: str
    text: str


_TO_BE_PLACED = PipelineWait("waiting", "waiting for Kubernetes to place its worker: a node has GPUs to spare")


@dataclass(frozen=True, slots=True)
class GpuDemand:
    """The GPUs that each worker of a pipeline requests, and whether the pipeline gives them back after a job."""

    gpus: int
    autoscaling: bool
    busy: bool = False
    """Whether a job of the pipeline runs."""
    idle: bool = False
    """Whether all its jobs have ended."""


class GpuWaits:
    """The waits on one server, whose cluster is asked now and then only."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asked = 0.0
        self._for: object = None
        self._holdings: GpuHoldings | None = None

    def look(
        self,
        infos: Mapping[str, Any],
        busy: Collection[str],
        idle: Collection[str] = (),
        said: Mapping[str, Sequence[str]] | None = None,
    ) -> dict[str, PipelineWait]:
        """The waits of pipelines, given as PipelineInfos with details. A job of those in `busy` runs, all jobs of those
        in `idle` have ended. `said` are reasons from Kubernetes, besides those that Pachyderm repeats."""
        wishes = {
            name: GpuDemand(
                info.details.resource_limits.gpu.number, info.details.autoscaling, name in busy, name in idle
            )
            for name, info in infos.items()
            if info.details.resource_limits.gpu.number
        }
        if not wishes:
            return {}
        crashing = {name for name in wishes if infos[name].state == pps_pb2.PIPELINE_CRASHING}
        machine = self._connection.retry(lambda: gpu_holders.local_leases(self._connection))
        if machine is not None:
            found = {name: on_machine(machine, name, wish, name in crashing) for name, wish in wishes.items()}
            return {name: wait for name, wait in found.items() if wait is not None}
        reasons = {
            name: [*([infos[name].reason] if name in crashing else ()), *(said or {}).get(name, ())] for name in wishes
        }
        kinds = {name: infos[name].details.resource_limits.gpu.type or _NVIDIA for name in wishes}
        short = [name for name in wishes if any(is_short(text, kinds[name]) for text in reasons[name])]
        self._ask((short, wishes))
        waits = {name: on_cluster(self._holdings, self._connection.project, name, wishes) for name in short}
        for name in short:
            if waits[name] is None and all(_is_only_short(text, kinds[name]) for text in reasons[name]):
                waits[name] = _TO_BE_PLACED
        return {name: wait for name, wait in waits.items() if wait is not None}

    def _ask(self, situation: tuple[Sequence[str], Mapping[str, GpuDemand]]) -> None:
        """Asks the cluster for the holders if some pipeline is short of GPUs and the answer is old, or the pipelines'
        situation is another one."""
        now = time.monotonic()
        if not situation[0] or (situation == self._for and now - self._asked < _ASK_EVERY):
            return
        try:
            self._holdings = gpu_holders.of_cluster()
        except LookalikeError:  # kubectl does not work here: Pachyderm's own states must do
            self._holdings = None
        self._asked, self._for = now, situation


def is_short(reason: str, kind: str) -> bool:
    """Whether Kubernetes gives a shortage of this kind of GPUs as a reason."""
    return f"Insufficient {kind or _NVIDIA}" in reason


def _is_only_short(reason: str, kind: str) -> bool:
    """Whether Kubernetes gives no other reason, as it still does for a moment after a GPU was given back."""
    causes = " ".join(reason.split()).partition(" preemption: ")[0]
    only = rf".*0/(\d+) nodes are available: \1 Insufficient {re.escape(kind)}[.:]*"
    return re.fullmatch(only, causes) is not None


def on_machine(machine: GpuMachine, name: str, wish: GpuDemand, crashing: bool) -> PipelineWait | None:
    """The wait of a pipeline on localpachd's machine."""
    if wish.gpus > machine.total:
        if not crashing:  # it runs on the CPU
            return None
        has = f"has {counted(machine.total, 'GPU', 'GPUs')}" if machine.total else "has no GPU"
        fix = "start the server without --strict-gpus to compute on the CPU"
        return PipelineWait(
            "crashing", f"a worker requests {counted(wish.gpus, 'GPU', 'GPUs')}, this machine {has}: {fix}"
        )
    others = _names([each.pipeline for each in machine.holders])
    if not wish.busy or name in others or machine.total - machine.allocated >= wish.gpus:
        return None
    return PipelineWait("waiting", _waiting(wish.gpus, others))


def on_cluster(
    holdings: GpuHoldings | None, project: str, name: str, wishes: Mapping[str, GpuDemand]
) -> PipelineWait | None:
    """The wait of a pipeline for which Kubernetes gives a shortage of GPUs as a reason; None if the shortage is not the
    whole reason. `holdings` are None where the cluster cannot be asked."""
    wish, full = wishes[name], f"{project}/{name}"
    if wish.idle and wish.autoscaling:  # its worker is gone
        return PipelineWait("standby", "")
    pending = [each for each in holdings.pending if each.pipeline == full] if holdings else []
    if holdings is None or not (pending or _held(holdings.nodes, full)):  # or another cluster's
        return _by_pachyderm(name, wishes)
    if not pending:  # Pachyderm notices after a while
        return PipelineWait("running", "")
    large = [node for node in holdings.nodes if node.total >= wish.gpus]
    able = [node for node in large if node.status == "Ready"]
    if not able:
        if any(each.node_coming for each in pending):
            return PipelineWait("waiting", f"waiting for a node with {_gpus(wish.gpus)}, which the cluster is adding")
        if large:
            nodes = ", ".join(node.name for node in large[:_MOST_HOLDERS])
            return PipelineWait("waiting", f"waiting for a node with {_gpus(wish.gpus)}: not ready are {nodes}")
        return PipelineWait("crashing", _never(wish.gpus, [node.total for node in holdings.nodes]))
    if any(node.total - node.allocated >= wish.gpus for node in able):
        return None
    standing = {f"{project}/{each}" for each, other in wishes.items() if not other.autoscaling and each != name}
    keepers = _names(each.pipeline for node in able for each in node.holders if each.pipeline in standing)
    if all(node.total - sum(_held([node], keeper) for keeper in keepers) < wish.gpus for node in able):
        return PipelineWait("crashing", _kept([_short_name(each, project) for each in keepers], wish.gpus))
    waiting = _waiting(wish.gpus, _names(_holders(able, project, name)))
    if _held(holdings.nodes, full):
        return PipelineWait("running", f"{counted(len(pending), 'worker', 'workers')} more {waiting}")
    return PipelineWait("waiting", waiting)


def _by_pachyderm(name: str, wishes: Mapping[str, GpuDemand]) -> PipelineWait:
    if wishes[name].busy:
        return PipelineWait("running", "")
    others = [each for each, wish in wishes.items() if each != name and wish.busy]
    standing = [each for each, wish in wishes.items() if each != name and not wish.autoscaling]
    return PipelineWait("waiting", _waiting(wishes[name].gpus, others or standing))


def _holders(nodes: Sequence[GpuMachine], project: str, name: str) -> Iterator[str]:
    for node in nodes:
        for each in node.holders:
            if each.pipeline != f"{project}/{name}":
                yield _short_name(each.pipeline, project) or f"{each.worker} outside Pachyderm"


def _short_name(pipeline: str, project: str) -> str:
    return pipeline.removeprefix(f"{project}/")


def _held(nodes: Sequence[GpuMachine], pipeline: str) -> int:
    return sum(each.gpus for node in nodes for each in node.holders if each.pipeline == pipeline)


def _names(names: "Iterator[str] | Sequence[str]") -> list[str]:
    return list(dict.fromkeys(names))


def _waiting(gpus: int, holders: Sequence[str]) -> str:
    if not holders:
        return f"waiting for {_gpus(gpus)}, which no node has to spare"
    return f"waiting for {_gpus(gpus)}, held by {first_of(holders, _MOST_HOLDERS)}"


def _never(gpus: int, totals: Sequence[int]) -> str:
    if not totals:
        return "no node of the cluster has a GPU: add a node with GPUs, or deploy with --overlay cpu"
    return (
        f"a worker requests {_gpus(gpus)}, and no node has more than {max(totals)}: lower resource_limits.gpu.number, "
        "or add a larger node"
    )


def _kept(keepers: Sequence[str], gpus: int) -> str:
    return (
        f"waiting for {_gpus(gpus)}, kept between jobs by {', '.join(keepers)}: "
        'set "autoscaling": true there, or add a node with GPUs'
    )


def _gpus(number: int) -> str:
    return "a GPU" if number == 1 else f"{number} GPUs"
