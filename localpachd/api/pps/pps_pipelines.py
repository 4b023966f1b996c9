"""The calls about pipelines, and those that take specifications or their defaults."""

import json
import time
from collections.abc import Iterator, Mapping

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.messages import pages, pps_messages as messages, protojson
from localpachd.api.messages.spec_reader import MergedSpec, SpecReader
from localpachd.api.messages.times import timestamp
from localpachd.api.pfs.transaction_servicer import TransactionalCalls
from localpachd.api.schema.schema import pfs_pb2, pps_pb2, transaction_pb2
from localpachd.errors import InvalidArgument, PachError, prefixed
from localpachd.pfs import projects
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pps import pipelines, spec_defaults
from localpachd.pps.pps_entities import JobState, Pipeline, PipelineInfo, PipelineState
from localpachd.pps.pps_service import PpsService
from localpachd.pps.specs import spec, templates
from speclang.names import DEFAULT_PROJECT

_BAD_PIPELINE = (PipelineState.FAILURE, PipelineState.CRASHING)
_BAD_JOB = (JobState.KILLED, JobState.FAILURE, JobState.UNRUNNABLE)
_SetRequest = pps_pb2.SetClusterDefaultsRequest | pps_pb2.SetProjectDefaultsRequest


class PipelineCalls:
    """Pipelines of `pps_v2.API`, their specifications, and the defaults of these for the server and for projects."""

    _pfs: PfsService
    _pps: PpsService
    _specs: SpecReader
    _write: TransactionalCalls

    def InspectPipeline(self, request: pps_pb2.InspectPipelineRequest) -> pps_pb2.PipelineInfo:
        info = self._pps.inspect_pipeline(messages.to_pipeline(request.pipeline))
        return messages.pipeline_info(info, request.details, workers=True)

    def ListPipeline(self, request: pps_pb2.ListPipelineRequest) -> Iterator[pps_pb2.PipelineInfo]:
        passes = protojson.message_filter(request.jqFilter)
        asked, within = messages.optional_pipeline(request.pipeline), messages.project_names(request.projects)
        found = self._pps.list_pipelines(asked, request.history, within, request.commit_set.id)
        # Pachyderm always includes the details, whatever the request says, and pachctl relies on that.
        shown = [message for message in map(messages.pipeline_info, found) if passes(message)]
        yield from pages.page_of(shown, request.page)

    def PipelinesSummary(self, request: pps_pb2.PipelinesSummaryRequest) -> pps_pb2.PipelinesSummaryResponse:
        wanted = [each.name for each in request.projects] or self._every_project()
        found: dict[str, list[PipelineInfo]] = {}
        for info in self._pps.list_pipelines():
            found.setdefault(info.pipeline.project, []).append(info)
        return pps_pb2.PipelinesSummaryResponse(
            summaries=[_summary(name, found[name]) for name in wanted if name in found]
        )

    def CheckStatus(self, request: pps_pb2.CheckStatusRequest) -> Iterator[pps_pb2.CheckStatusResponse]:
        # Pachyderm would warn of workers that run for too long, but never records when they started.
        return iter(())

    def StartPipeline(self, request: pps_pb2.StartPipelineRequest) -> None:
        pipeline = messages.required_pipeline(request)
        self._pfs.transact(lambda txn: pipelines.start(txn, pipeline))

    def StopPipeline(self, request: pps_pb2.StopPipelineRequest) -> None:
        pipeline = messages.required_pipeline(request)
        self._pfs.transact(lambda txn: pipelines.stop(txn, pipeline, request.must_exist))

    def RunCron(self, request: pps_pb2.RunCronRequest) -> None:
        self._pps.cron.run_now(messages.required_pipeline(request))

    def DeletePipeline(self, request: pps_pb2.DeletePipelineRequest) -> None:
        if request.all:
            project = request.pipeline.project.name or DEFAULT_PROJECT
            self._pps.delete_pipelines({project}, request.force, request.keep_repo)
        else:
            self._pps.delete_pipeline(
                messages.required_pipeline(request), request.force, request.keep_repo, request.must_exist
            )

    def DeletePipelines(self, request: pps_pb2.DeletePipelinesRequest) -> pps_pb2.DeletePipelinesResponse:
        named = None if request.all else messages.project_names(request.projects)
        gone = self._pps.delete_pipelines(named, request.force, request.keep_repo)
        return pps_pb2.DeletePipelinesResponse(pipelines=[messages.pipeline(each) for each in gone])

    def _every_project(self) -> list[str]:
        with self._pfs.db.read() as conn:
            return [info.name for info in projects.list_all(conn)]

    def CreatePipeline(self, request: pps_pb2.CreatePipelineRequest, context: CallContext) -> None:
        self._write(context, transaction_pb2.TransactionRequest(create_pipeline=request))

    def CreatePipelineV2(
        self, request: pps_pb2.CreatePipelineV2Request, context: CallContext
    ) -> pps_pb2.CreatePipelineV2Response:
        with prefixed("could not make effective spec", InvalidArgument):
            merged = self._specs.now(request.create_pipeline_request_json)
            effective = merged.effective_message()
        if not effective.HasField("pipeline"):
            raise PachError("request.Pipeline cannot be nil")
        effective.update, effective.reprocess = request.update, request.reprocess
        if not effective.pipeline.project.name:
            effective.pipeline.project.name = DEFAULT_PROJECT
        if request.dry_run:
            # Pachyderm validates the specification only when it creates the pipeline; a dry run here does, too.
            spec.parse(merged.request(request.update, request.reprocess), time.time_ns())
        else:
            asked = merged.transaction(request.update, request.reprocess)
            self._write(context, transaction_pb2.TransactionRequest(create_pipeline_v2=asked))
        return pps_pb2.CreatePipelineV2Response(
            effective_create_pipeline_request_json=json.dumps(protojson.as_json(effective))
        )

    def RerunPipeline(self, request: pps_pb2.RerunPipelineRequest) -> None:
        pipeline = messages.required_pipeline(request)
        self._pfs.transact(lambda txn: pipelines.rerun(txn, pipeline, request.reprocess))

    def RenderTemplate(self, request: pps_pb2.RenderTemplateRequest) -> pps_pb2.RenderTemplateResponse:
        text = templates.render(request.template, dict(request.args), self._pfs.reach)
        rendered = json.loads(text)
        if not isinstance(rendered, dict | list):
            raise PachError(f"not a json object or list: {text}")
        found = rendered if isinstance(rendered, list) else [rendered]
        specs = [self._specs.request(json.dumps(each)) for each in found]
        return pps_pb2.RenderTemplateResponse(json=text, specs=specs)

    def GetClusterDefaults(self, request: pps_pb2.GetClusterDefaultsRequest) -> pps_pb2.GetClusterDefaultsResponse:
        with self._pfs.db.read() as conn:
            return pps_pb2.GetClusterDefaultsResponse(cluster_defaults_json=spec_defaults.read(conn).spec)

    def SetClusterDefaults(self, request: pps_pb2.SetClusterDefaultsRequest) -> pps_pb2.SetClusterDefaultsResponse:
        return pps_pb2.SetClusterDefaultsResponse(
            affected_pipelines=self._set(request, request.cluster_defaults_json, spec_defaults.SERVER, "cluster")
        )

    def GetProjectDefaults(self, request: pps_pb2.GetProjectDefaultsRequest) -> pps_pb2.GetProjectDefaultsResponse:
        project = request.project.name or DEFAULT_PROJECT
        with self._pfs.db.read() as conn:
            projects.inspect(conn, project)
            found = spec_defaults.read(conn, project)
        return pps_pb2.GetProjectDefaultsResponse(project_defaults_json=found.spec, created_at=timestamp(found.created))

    def SetProjectDefaults(self, request: pps_pb2.SetProjectDefaultsRequest) -> pps_pb2.SetProjectDefaultsResponse:
        project = request.project.name or DEFAULT_PROJECT
        with self._pfs.db.read() as conn:
            projects.inspect(conn, project)
        return pps_pb2.SetProjectDefaultsResponse(
            affected_pipelines=self._set(request, request.project_defaults_json, project, "project")
        )

    def _set(self, request: _SetRequest, text: str, project: str, kind: str) -> list[pps_pb2.Pipeline]:
        """Sets defaults and, if the request says so, updates the pipelines that they change. Returns these."""
        with prefixed(f"invalid {kind} defaults JSON", InvalidArgument):
            new = self._specs.read_defaults(text)
        affected = dict(self._affected(new, project)) if request.regenerate else {}

        def step(txn: Transaction) -> None:
            spec_defaults.write(txn, text, project)
            for pipeline, merged in affected.items():
                with prefixed(f"could not regenerate pipeline {pipeline}"):
                    self._pps.add_pipeline(txn, merged.request(True, request.reprocess), merged.written)

        if not request.dry_run:
            self._pfs.transact(step)
        return [messages.pipeline(each) for each in affected]

    def _affected(self, new: Mapping[str, object], project: str) -> Iterator[tuple[Pipeline, MergedSpec]]:
        """The pipelines that these defaults, of a project or of the server, change."""
        chosen = () if project == spec_defaults.SERVER else (project,)
        for info in self._pps.list_pipelines(projects=chosen):
            with self._pfs.db.read() as conn:
                cluster, own = (
                    spec_defaults.read(conn, name).spec for name in (spec_defaults.SERVER, info.pipeline.project)
                )
            if project == spec_defaults.SERVER:
                merged = self._specs.merge(info.written.user, new, self._specs.read_defaults(own))
            else:
                merged = self._specs.merge(info.written.user, self._specs.read_defaults(cluster), new)
            if merged.effective_message() != self._specs.request(info.written.effective):
                yield info.pipeline, merged


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
