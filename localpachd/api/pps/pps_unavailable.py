"""The calls about things that localpachd does not have: Kubernetes, Loki, a queue of tasks."""

from collections.abc import Iterator
from typing import NoReturn

import grpc

from localpachd.api.schema.schema import pps_pb2, task_pb2
from localpachd.errors import PachError

_NO_LOKI = "loki not configured: localpachd runs pipelines without Kubernetes; `pachctl logs` has all their logs"


class UnavailableCalls:
    """RunPipeline, GetKubeEvents, QueryLoki and ListTask of `pps_v2.API`."""

    def RunPipeline(self, request: pps_pb2.RunPipelineRequest, context: grpc.ServicerContext) -> NoReturn:
        # Pachyderm's answer, too; `rerun pipeline` and `run cron` have replaced the call.
        raise PachError("unimplemented")

    def GetKubeEvents(self, request: pps_pb2.LokiRequest, context: grpc.ServicerContext) -> NoReturn:
        raise PachError(_NO_LOKI)

    def QueryLoki(self, request: pps_pb2.LokiRequest, context: grpc.ServicerContext) -> NoReturn:
        raise PachError(_NO_LOKI)

    def ListTask(self, request: task_pb2.ListTaskRequest, context: grpc.ServicerContext) -> Iterator[task_pb2.TaskInfo]:
        return iter(())
