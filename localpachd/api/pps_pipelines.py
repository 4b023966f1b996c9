"""The calls about pipelines."""

from collections.abc import Iterator
from typing import Any

from localpachd.api import pps_messages as messages
from localpachd.api.schema import Empty, pps_pb2
from localpachd.errors import PachError
from localpachd.pfs.values import DEFAULT_PROJECT
from localpachd.pps.service import Pps


class PipelineCalls:
    """Pipelines of `pps_v2.API`."""

    _pps: Pps

    def CreatePipeline(self, request: Any, context: Any) -> Any:
        if not request.HasField("pipeline"):
            raise PachError("request.Pipeline cannot be nil")
        self._pps.create_pipeline(messages.as_mapping(request))
        return Empty()

    def InspectPipeline(self, request: Any, context: Any) -> Any:
        info = self._pps.inspect_pipeline(messages.to_pipeline(request.pipeline))
        return messages.pipeline_info(info, request.details, workers=True)

    def ListPipeline(self, request: Any, context: Any) -> Iterator[Any]:
        passes = messages.message_filter(request.jqFilter)
        found = self._pps.list_pipelines(
            messages.optional_pipeline(request),
            request.history,
            messages.project_names(request),
            request.commit_set.id,
        )
        for info in found:
            # The original leaves the details in, whatever the request says, and pachctl relies on it.
            message = messages.pipeline_info(info)
            if passes(message):
                yield message

    def StartPipeline(self, request: Any, context: Any) -> Any:
        self._pps.start_pipeline(_required(request))
        return Empty()

    def StopPipeline(self, request: Any, context: Any) -> Any:
        self._pps.stop_pipeline(_required(request))
        return Empty()

    def DeletePipeline(self, request: Any, context: Any) -> Any:
        if request.all:
            project = request.pipeline.project.name or DEFAULT_PROJECT
            self._pps.delete_pipelines({project}, request.force, request.keep_repo)
        else:
            self._pps.delete_pipeline(_required(request), request.force, request.keep_repo)
        return Empty()

    def DeletePipelines(self, request: Any, context: Any) -> Any:
        projects = None if request.all else messages.project_names(request)
        gone = self._pps.delete_pipelines(projects, request.force, request.keep_repo)
        return pps_pb2.DeletePipelinesResponse(pipelines=[messages.pipeline(each) for each in gone])

    def DeleteAll(self, request: Any, context: Any) -> Any:
        self._pps.delete_pipelines(None, force=True)
        return Empty()


def _required(request: Any) -> Any:
    if not request.HasField("pipeline"):
        raise PachError("request.Pipeline cannot be nil")
    return messages.to_pipeline(request.pipeline)
