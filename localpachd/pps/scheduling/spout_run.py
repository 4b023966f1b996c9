"""The run of a spout: the command of one version, kept running without jobs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from localpachd.pfs.pfs_entities import Branch
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps.pps_entities import LogMessage, Pipeline, PipelineInfo
from localpachd.pps.scheduling.base_run import BaseRun
from localpachd.pps.scheduling.command_supervisor import CommandSupervisor
from localpachd.worker.tasks import DatumWork, ServicePorts, TaskRunner, WorkerPod

SPOUT = "spout"
"""In the place of a job's id in a spout's log lines."""


class SpoutSidecars(Protocol):
    """Serves the API to spouts, each on a port of its own. Implemented by the room that knows gRPC."""

    def open(self, output: Branch) -> int:
        """Serves the API on a fresh loopback port and returns it; callers there may commit to this output branch."""

    def close(self, port: int) -> None:
        """Stops serving a port that `open` returned."""


class SpoutRun(BaseRun):
    """Keeps one version of a spout running until it is cancelled."""

    def __init__(
        self,
        pfs: PfsService,
        runner: TaskRunner,
        info: PipelineInfo,
        pod: WorkerPod,
        sidecars: SpoutSidecars,
        over: Callable[["SpoutRun"], None],
    ) -> None:
        super().__init__(f"spout {info.pipeline}", lambda: over(self))
        self.pipeline: Pipeline = info.pipeline
        self.spec_commit = info.spec_commit.id
        self._sidecars = sidecars
        # The port identifies the spout: callers on it may commit to the spout's output.
        self._port = sidecars.open(Branch(info.pipeline.repo, info.spec.output_branch))
        worker = info.pipeline.worker(info.version, 0)
        own = replace(pod, worker=worker, server_port=self._port)
        task = replace(info.spec.task(own), pachd=f"127.0.0.1:{self._port}")
        asked = info.spec.service
        ports = ServicePorts(asked.internal_port, asked.external_port, self._port, own_network=False) if asked else None
        line = LogMessage(0, info.pipeline, SPOUT, "", worker, False, False, "")
        self._supervisor = self._hold(CommandSupervisor(pfs, runner, task, ports, line))

    def _work(self) -> None:
        try:
            self._supervisor.run(DatumWork(SPOUT, (), {}))
        finally:
            self._sidecars.close(self._port)
