"""The calls about pipelines."""

from collections.abc import Iterator

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.messages import pages, protojson
from localpachd.api.messages import pps_messages as messages
from localpachd.api.schema.schema import Empty, pfs_pb2, pps_pb2
from localpachd.pfs import projects
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps.pps_entities import JobState, PipelineInfo, PipelineState
from localpachd.pps.pps_service import PpsService
from speclang.names import DEFAULT_PROJECT

_BAD_PIPELINE = (PipelineState.FAILURE, PipelineState.CRASHING)
_BAD_JOB = (JobState.KILLED, JobState.FAILURE, JobState.UNRUNNABLE)


class PipelineCalls:
    """Pipelines of `pps_v2.API`, except the calls that take a specification."""

    _pfs: PfsService
    _pps: PpsService

    def InspectPipeline(self, request: pps_pb2.InspectPipelineRequest, context: CallContext) -> pps_pb2.PipelineInfo:
        info = self._pps.inspect_pipeline(messages.to_pipeline(request.pipeline))
        return messages.pipeline_info(info, request.details, workers=True)

    def ListPipeline(
        self, request: pps_pb2.ListPipelineRequest, context: CallContext
    ) -> Iterator[pps_pb2.PipelineInfo]:
        passes = protojson.message_filter(request.jqFilter)
        found = self._pps.list_pipelines(
            messages.optional_pipeline(request),
            request.history,
            messages.project_names(request),
            request.commit_set.id,
        )
        # Pachyderm always includes the details, whatever the request says, and pachctl relies on that.
        shown = [message for message in map(messages.pipeline_info, found) if passes(message)]
        yield from pages.page_of(shown, request.page)

    def PipelinesSummary(
        self, request: pps_pb2.PipelinesSummaryRequest, context: CallContext
    ) -> pps_pb2.PipelinesSummaryResponse:
        wanted = [each.name for each in request.projects] or self._every_project()
        found: dict[str, list[PipelineInfo]] = {}
        for info in self._pps.list_pipelines():
            found.setdefault(info.pipeline.project, []).append(info)
        return pps_pb2.PipelinesSummaryResponse(
            summaries=[_summary(name, found[name]) for name in wanted if name in found]
        )

    def CheckStatus(
        self, request: pps_pb2.CheckStatusRequest, context: CallContext
    ) -> Iterator[pps_pb2.CheckStatusResponse]:
        # Pachyderm would warn of workers that run for too long, but never records when they started.
        return iter(())

    def StartPipeline(self, request: pps_pb2.StartPipelineRequest, context: CallContext) -> Empty:
        self._pps.start_pipeline(messages.required_pipeline(request))
        return Empty()

    def StopPipeline(self, request: pps_pb2.StopPipelineRequest, context: CallContext) -> Empty:
        self._pps.stop_pipeline(messages.required_pipeline(request), request.must_exist)
        return Empty()

    def RunCron(self, request: pps_pb2.RunCronRequest, context: CallContext) -> Empty:
        self._pps.run_cron(messages.required_pipeline(request))
        return Empty()

    def DeletePipeline(self, request: pps_pb2.DeletePipelineRequest, context: CallContext) -> Empty:
        if request.all:
            project = request.pipeline.project.name or DEFAULT_PROJECT
            self._pps.delete_pipelines({project}, request.force, request.keep_repo)
        else:
            self._pps.delete_pipeline(
                messages.required_pipeline(request), request.force, request.keep_repo, request.must_exist
            )
        return Empty()

    def DeletePipelines(
        self, request: pps_pb2.DeletePipelinesRequest, context: CallContext
    ) -> pps_pb2.DeletePipelinesResponse:
        named = None if request.all else messages.project_names(request)
        gone = self._pps.delete_pipelines(named, request.force, request.keep_repo)
        return pps_pb2.DeletePipelinesResponse(pipelines=[messages.pipeline(each) for each in gone])

    def _every_project(self) -> list[str]:
        with self._pfs.db.read() as conn:
            return [info.name for info in projects.list_all(conn)]


def _summary(project: str, infos: list[PipelineInfo]) -> pps_pb2.PipelinesSummary:
    states = [info.state for info in infos]
    failed, paused = sum(state in _BAD_PIPELINE for state in states), states.count(PipelineState.PAUSED)
    return pps_pb2.PipelinesSummary(
        project=pfs_pb2.Project(name=project),
        active_pipelines=len(states) - failed - paused,
        paused_pipelines=paused,
        failed_pipelines=failed,
        unhealthy_pipelines=sum(info.last_job_state in _BAD_JOB for info in infos),
    )
