"""The calls whose right answer here is that there is nothing: no Kubernetes, no Loki, no queue of tasks."""

from collections.abc import Iterator
from typing import NoReturn

import grpc

from localpachd.api.schema import pps_pb2, task_pb2
from localpachd.errors import PachError

_NO_LOKI = "loki not configured: localpachd runs pipelines without Kubernetes, and `pachctl logs` has all they say"


class UnavailableCalls:
    """RunPipeline, GetKubeEvents, QueryLoki and ListTask of `pps_v2.API`."""

    def RunPipeline(self, request: pps_pb2.RunPipelineRequest, context: grpc.ServicerContext) -> NoReturn:
        # What the real server answers too; `rerun pipeline` and `run cron` took its place.
        raise PachError("unimplemented")

    def GetKubeEvents(self, request: pps_pb2.LokiRequest, context: grpc.ServicerContext) -> NoReturn:
        raise PachError(_NO_LOKI)

    def QueryLoki(self, request: pps_pb2.LokiRequest, context: grpc.ServicerContext) -> NoReturn:
        raise PachError(_NO_LOKI)

    def ListTask(self, request: task_pb2.ListTaskRequest, context: grpc.ServicerContext) -> Iterator[task_pb2.TaskInfo]:
        return iter(())
