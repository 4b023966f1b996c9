"""The calls whose right answer here is that there is nothing: no Kubernetes, no Loki, no queue of tasks."""

from collections.abc import Iterator
from typing import Any, NoReturn

from localpachd.errors import PachError

_NO_LOKI = "loki not configured: localpachd runs pipelines without Kubernetes, and `pachctl logs` has all they say"


class UnavailableCalls:
    """RunPipeline, GetKubeEvents, QueryLoki and ListTask of `pps_v2.API`."""

    def RunPipeline(self, request: Any, context: Any) -> NoReturn:
        # What the real server answers too; `rerun pipeline` and `run cron` took its place.
        raise PachError("unimplemented")

    def GetKubeEvents(self, request: Any, context: Any) -> NoReturn:
        raise PachError(_NO_LOKI)

    def QueryLoki(self, request: Any, context: Any) -> NoReturn:
        raise PachError(_NO_LOKI)

    def ListTask(self, request: Any, context: Any) -> Iterator[Any]:
        return iter(())
