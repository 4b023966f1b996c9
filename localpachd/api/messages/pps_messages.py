"""The pps room's entities as protobuf messages, complete with every field, and back."""

from collections.abc import Container, Iterable, Mapping
from typing import TypeVar

from google.protobuf import json_format

from localpachd.api.messages import pfs_messages
from localpachd.api.messages.times import duration, seconds, timestamp
from localpachd.api.schema.schema import pfs_pb2, pps_pb2
from localpachd.errors import PachError
from localpachd.pfs.pfs_entities import Commit, Repo
from localpachd.pps import datum_records
from localpachd.pps.datum_records import DatumRecord
from localpachd.pps.datums import Datum, DatumInput
from localpachd.pps.pps_entities import (
    DatumCounters,
    Job,
    JobInfo,
    JobSetInfo,
    LogMessage,
    Pipeline,
    PipelineInfo,
    PipelineState,
    WorkerStatus,
)
from localpachd.pps.specs import inputs
from localpachd.worker.tasks import DatumOutcome, DatumStats
from speclang.names import DEFAULT_PROJECT

T = TypeVar("T")

PipelineRequest = (
    pps_pb2.StartPipelineRequest
    | pps_pb2.StopPipelineRequest
    | pps_pb2.DeletePipelineRequest
    | pps_pb2.RerunPipelineRequest
    | pps_pb2.RunCronRequest
)
"""A request that must name a pipeline."""

_PIPELINE_DETAILS = frozenset(pps_pb2.PipelineInfo.Details.DESCRIPTOR.fields_by_name)
_DATUM_STATES = {
    DatumOutcome.PROCESSED: pps_pb2.SUCCESS,
    DatumOutcome.FAILED: pps_pb2.FAILED,
    DatumOutcome.RECOVERED: pps_pb2.RECOVERED,
}
_JOB_DETAILS = frozenset(pps_pb2.JobInfo.Details.DESCRIPTOR.fields_by_name)


def to_pipeline(message: pps_pb2.Pipeline) -> Pipeline:
    """The pipeline that a request names; no project means `default`."""
    if not message.name:
        raise PachError("pipeline must be specified")
    return Pipeline(message.project.name or DEFAULT_PROJECT, message.name)


def required_pipeline(request: PipelineRequest) -> Pipeline:
    """The pipeline of a request; PachError if there is none."""
    if not request.HasField("pipeline"):
        raise PachError("request.Pipeline cannot be nil")
    return to_pipeline(request.pipeline)


def to_job(message: pps_pb2.Job, missing: str = "must specify a job") -> Job:
    """The job that a request names; PachError with the text `missing` if it names none."""
    if not message.ByteSize():
        raise PachError(missing)
    return Job(to_pipeline(message.pipeline), message.id)


def named_job(message: pps_pb2.Job) -> Job:
    """The job that a request names; without a pipeline, the pipeline's name is empty."""
    return Job(Pipeline(message.pipeline.project.name or DEFAULT_PROJECT, message.pipeline.name), message.id)


def optional_pipeline(message: pps_pb2.Pipeline) -> Pipeline | None:
    """The pipeline that a request names; None if it names none."""
    return to_pipeline(message) if message.name else None


def project_names(projects: Iterable[pfs_pb2.Project]) -> frozenset[str]:
    """The names of a request's projects; an empty set means all projects."""
    return frozenset(each.name or DEFAULT_PROJECT for each in projects)


def pipeline(value: Pipeline) -> pps_pb2.Pipeline:
    return pps_pb2.Pipeline(project=pfs_pb2.Project(name=value.project), name=value.name)


def job(value: Job) -> pps_pb2.Job:
    return pps_pb2.Job(pipeline=pipeline(value.pipeline), id=value.id)


def pipeline_info(value: PipelineInfo, details: bool = True, workers: bool = False) -> pps_pb2.PipelineInfo:
    """A PipelineInfo, with `details` if asked for; `workers` counts workers in them, as InspectPipeline does."""
    message = pps_pb2.PipelineInfo(
        pipeline=pipeline(value.pipeline),
        version=value.version,
        spec_commit=pfs_messages.commit(value.spec_commit),
        stopped=value.stopped,
        state=pps_pb2.PipelineState.Value(value.state),
        reason=value.reason,
        last_job_state=pps_pb2.JobState.Value(value.last_job_state),
        parallelism=value.spec.parallelism,
        metadata=value.metadata,
        type=getattr(pps_pb2.PipelineInfo, value.spec.kind),
        user_spec_json=value.written.user,
        effective_spec_json=value.written.effective,
    )
    if details:
        json_format.ParseDict(_chosen(value.spec.raw, _PIPELINE_DETAILS), message.details)
        created = timestamp(value.created)
        message.details.created_at.CopyFrom(created)
        message.details.updated_at.CopyFrom(created)
        if workers:
            message.details.workers_requested = value.spec.parallelism
            message.details.workers_available = value.spec.parallelism if value.state is PipelineState.RUNNING else 0
    return message


def job_info(value: JobInfo, details: bool = True) -> pps_pb2.JobInfo:
    """A JobInfo. Every leaf of its input names the job's id as its commit."""
    message = pps_pb2.JobInfo(
        job=job(value.job),
        pipeline_version=value.version,
        output_commit=pfs_messages.commit(value.output_commit),
        restart=value.restart,
        data_processed=value.counters.processed,
        data_skipped=value.counters.skipped,
        data_total=value.counters.total,
        data_failed=value.counters.failed,
        data_recovered=value.counters.recovered,
        stats=process_stats(value.stats),
        state=pps_pb2.JobState.Value(value.state),
        reason=value.reason,
        created=timestamp(value.created),
        started=timestamp(value.started),
        finished=timestamp(value.finished),
    )
    if details:
        raw = _chosen(value.spec.raw, _JOB_DETAILS)
        if "input" in raw:
            raw["input"] = inputs.at_commit(raw["input"], value.job.id)
        json_format.ParseDict(raw, message.details)
        message.details.worker_status.extend(_worker_status(each) for each in value.worker_status)
    return message


def job_set_info(value: JobSetInfo, details: bool = True) -> pps_pb2.JobSetInfo:
    return pps_pb2.JobSetInfo(
        job_set=pps_pb2.JobSet(id=value.id), jobs=[job_info(each, details) for each in value.jobs]
    )


def datum_info(value: DatumRecord, asked: Job, meta: Commit | None = None) -> pps_pb2.DatumInfo:
    """A DatumInfo of a datum of the job that was `asked` for, which skipped it if another one processed it; with
    `pfs_state` if its `meta` commit is given."""
    message = pps_pb2.DatumInfo(
        datum=pps_pb2.Datum(id=value.id, job=job(value.job)),
        state=_DATUM_STATES[value.outcome] if value.job == asked else pps_pb2.SKIPPED,
        stats=process_stats(value.stats),
        data=map(_file_info, value.inputs),
    )
    if meta is not None:
        message.pfs_state.commit.CopyFrom(pfs_messages.commit(meta))
        message.pfs_state.path = datum_records.pfs_path(value.id)
    return message


def input_datum(value: Datum) -> pps_pb2.DatumInfo:
    """The DatumInfo of a datum that no job has processed."""
    return pps_pb2.DatumInfo(
        datum=pps_pb2.Datum(id=value.id), stats=process_stats(DatumStats()), data=map(_file_info, value.inputs)
    )


def log_message(value: LogMessage) -> pps_pb2.LogMessage:
    return pps_pb2.LogMessage(
        project_name=value.pipeline.project if value.pipeline else "",
        pipeline_name=value.pipeline.name if value.pipeline else "",
        job_id=value.job,
        worker_id=value.worker,
        datum_id=value.datum,
        master=value.master,
        data=[pps_pb2.InputFile(path=path, hash=digest) for path, digest in value.data],
        user=value.user,
        ts=timestamp(value.ts),
        message=value.message,
    )


def to_counters(request: pps_pb2.UpdateJobStateRequest) -> DatumCounters:
    return DatumCounters(
        request.data_processed, request.data_skipped, request.data_total, request.data_failed, request.data_recovered
    )


def to_stats(message: pps_pb2.ProcessStats) -> DatumStats:
    return DatumStats(
        seconds(message.download_time),
        seconds(message.process_time),
        seconds(message.upload_time),
        message.download_bytes,
        message.upload_bytes,
    )


def process_stats(value: DatumStats) -> pps_pb2.ProcessStats:
    """A ProcessStats; a time of zero is not set, as that of an upload that never began."""
    return pps_pb2.ProcessStats(
        download_time=duration(value.download_time or None),
        process_time=duration(value.process_time or None),
        upload_time=duration(value.upload_time or None),
        download_bytes=value.download_bytes,
        upload_bytes=value.upload_bytes,
    )


def _chosen(raw: Mapping[str, T], fields: Container[str]) -> dict[str, T]:
    return {key: value for key, value in raw.items() if key in fields}


def _worker_status(value: WorkerStatus) -> pps_pb2.WorkerStatus:
    message = pps_pb2.WorkerStatus(worker_id=value.worker, job_id=value.job)
    if value.data:
        message.datum_status.started.CopyFrom(timestamp(value.started))
        message.datum_status.data.extend(pps_pb2.InputFile(path=each.path, hash=each.hash) for each in value.data)
    return message


def _file_info(value: DatumInput) -> pfs_pb2.FileInfo:
    commit = Commit(Repo(value.project, value.repo, value.repo_type), value.commit, value.branch)
    return pfs_pb2.FileInfo(
        file=pfs_pb2.File(commit=pfs_messages.commit(commit), path=value.path),
        file_type=pfs_pb2.DIR if value.path.endswith("/") else pfs_pb2.FILE,
        size_bytes=value.size,
        hash=value.hash,
    )
