"""The status: every pipeline with its running and newest jobs, reasons of failures, rejected files, empty repos."""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client import backbones
from pipelines.client.deployment import image_sizes
from pipelines.client.jobs.datums import DatumFailure, JobDatums
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.parallel_reads import parallel_reads
from pipelines.cluster import gpu_holders, gpu_waits, kube_client, pod_reasons
from pipelines.cluster.gpu_waits import GpuWaits, PipelineWait
from pipelines.cluster.job_waits import STOPPED, JobWaits, older
from pipelines.errors import LookalikeError
from stages.backbone.backbone_spec import SCALE_FILE, BackboneSpec
from stages.record.file_kinds import is_not_a_picture

MOST_FAILURES = 10
"""Most failed datums of a pipeline that are listed."""

_COUNTS = "a cluster counts datums when their datum set ends. Until then the numbers of a running job stand still"

FETCHED = "fetch"
"""The pipeline that brings pictures of buckets into the library."""

REJECTING = {"preprocess": "images", "preprocess-queries": "queries", FETCHED: "images"}
"""The repo that a pipeline's rejected files are told of: those of fetch would be pictures of the library."""

_LACKING = {
    "models": "the repo models has no backbone, so no features are computed: `lookalike model push efficientnet-lite0`",
    "images": "the library is empty: `lookalike add PATH…`",
    "queries": "the repo queries is empty: `lookalike query PATH…`",
}


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """A pipeline: its state in lower case, "waiting" for a wait that ends by itself, and the reason for it, its newest
    job, the older jobs that this one waits behind (first the one that is at work), some of the failed datums of the job
    at work, or of the newest, Kubernetes' reasons for workers that cannot run, and the notices of workers on GPUs that
    they do not use."""

    name: str
    state: str
    reason: str
    job: Job | None
    failures: Sequence[DatumFailure] = ()
    troubles: Sequence[str] = ()
    ahead: Sequence[Job] = ()
    on_gpus: Sequence[str] = ()

    @property
    def current(self) -> Job | None:
        """The job at work, with its busy workers; the newest if there is none."""
        return self.ahead[0] if self.ahead else self.job


@dataclass(frozen=True, slots=True)
class RejectedFile:
    """A rejected file: its repo, its true name, the stage that rejected it, and the reason."""

    repo: str
    source: str
    stage: str
    reason: str

    @property
    def is_skipped(self) -> bool:
        """Whether it is not a picture by its name either, so that there is nothing to mend."""
        return is_not_a_picture(self.source, self.reason)

    def is_in(self, names: Set[str]) -> bool:
        """Whether its name is one of these true names, or below one."""
        parts = self.source.split("/")
        above = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
        return not names.isdisjoint(above)


@dataclass(frozen=True, slots=True)
class ProjectStatus:
    """All of it. `missing` names the pipelines of the specifications that are not deployed."""

    pipelines: list[PipelineStatus]
    missing: list[str]
    rejected: list[RejectedFile]
    notes: list[str]


def read(
    connection: Connection, usual: Sequence[str], optional: Sequence[str] = (), most: int | None = None
) -> ProjectStatus:
    """The status of these pipelines, and of the optional ones that are deployed. `most` is as for `rejections`."""
    jobs = ProjectJobs(connection)
    with parallel_reads() as reads:
        rejected = reads.submit(rejections, connection, most)
        lacking = reads.submit(notes, connection)
        told = reads.submit(_troubles, connection)
        there = jobs.pipelines()
        names = [*usual, *(name for name in optional if name in there)]
        watched = [name for name in there if name in names or _wants_gpus(there[name])]
        queued = reads.map(lambda name: _queue(jobs, there[name]), watched)
        newest = dict(zip(watched, reads.map(jobs.newest, watched), strict=True))
        queues = dict(zip(watched, queued, strict=True))
        said, unknown = told.result()
        troubles = {name: (said or {}).get(f"{connection.project}/{name}", ()) for name in there}
        reasons = reads.submit(
            _reasons, connection, there, {name: queue[-1] for name, queue in queues.items() if queue}
        )
        running = {name for name, queue in queues.items() if any(job.state == "running" for job in queue)}
        idle = {name for name, queue in queues.items() if not queue}
        waits: dict[str, PipelineWait] = GpuWaits(connection).look(there, running, idle, troubles)
        why = reasons.result()
        found = list(
            reads.map(
                lambda name: _pipeline(
                    connection, there[name], newest[name], queues[name], troubles[name], waits.get(name), why.get(name)
                ),
                [name for name in names if name in there],
            )
        )
    missing = [name for name in names if name not in there]
    late = [_COUNTS] if said is not None and any(each.current and each.current.busy for each in found) else []
    return ProjectStatus(found, missing, rejected.result(), [*late, *unknown, *lacking.result()])


def _reasons(connection: Connection, there: Mapping[str, Any], current: Mapping[str, Job]) -> dict[str, PipelineWait]:
    """The waits for other things than GPUs and a cluster's nodes; `current` are the first jobs that have not ended."""
    waits = JobWaits(connection)
    with parallel_reads() as reads:
        found = reads.map(lambda job: waits.reason(there[job.pipeline], job, current), current.values())
    stopped = {name: PipelineWait("paused", STOPPED.format(name)) for name, info in there.items() if info.stopped}
    return stopped | {name: wait for name, wait in zip(current, found, strict=True) if wait is not None}


def _queue(jobs: ProjectJobs, info: Any) -> list[Job]:
    """The jobs of a pipeline that have not ended, newest first. Of a service's only the newest counts: the others end
    for it."""
    found = jobs.queue(info.pipeline.name)
    return found[:1] if _is_service(info) else found


def _is_service(info: Any) -> bool:
    return bool(info.details.HasField("service"))


def _wants_gpus(info: Any) -> bool:
    return bool(info.details.resource_limits.gpu.number)


def _troubles(connection: Connection) -> tuple[Mapping[str, Sequence[str]] | None, list[str]]:
    """The reasons for which a cluster's workers wait, by pipeline, and a note if they are unknown. None of localpachd,
    which gives them itself."""
    if gpu_holders.local_leases(connection) is not None:
        return None, []
    try:
        return kube_client.ask("troubles", connection.namespace), []
    except LookalikeError as error:
        return {}, [f"the reasons for which workers wait are unknown: {error}"]


def _pipeline(
    connection: Connection,
    info: Any,
    newest: Job | None,
    queue: Sequence[Job],
    troubles: Sequence[str],
    for_gpus: PipelineWait | None,
    reason: PipelineWait | None,
) -> PipelineStatus:
    state = pps_pb2.PipelineState.Name(info.state).removeprefix("PIPELINE_").lower()
    plain = tuple(dict.fromkeys(map(pod_reasons.plain_words, troubles)))
    ahead = [] if newest is None or newest.ended else older(queue, newest)
    found = PipelineStatus(info.pipeline.name, state, info.reason, newest, (), plain, ahead)
    current = found.current
    if current is not None:
        failures = JobDatums(connection, current).failed(MOST_FAILURES) if current.failed else []
        if not _is_service(info):  # whose only datum says nothing
            current = ProjectJobs(connection).with_workers(current)
        on_gpus = ProjectJobs(connection).on_gpus(current) if current.started and _wants_gpus(info) else ()
        found = replace(found, failures=failures, on_gpus=on_gpus)
        found = replace(found, ahead=[current, *found.ahead[1:]]) if found.ahead else replace(found, job=current)
    if for_gpus is not None:
        kind = info.details.resource_limits.gpu.type
        others = [pod_reasons.plain_words(each) for each in troubles if not gpu_waits.is_short(each, kind)]
        return replace(found, state=for_gpus.state, reason=for_gpus.text, troubles=others)
    if state == "crashing" and troubles:  # which Pachyderm repeats
        return replace(found, reason="")
    return found if reason is None else replace(found, state=reason.state, reason=reason.text)


def rejections(connection: Connection, most: int | None = None) -> list[RejectedFile]:
    """The rejected files of the library and of the queries, by name: all or, of each, up to `most` of them."""
    found: list[RejectedFile] = []
    with parallel_reads() as reads:
        records = reads.map(lambda pipeline: connection.retry(_records, connection, pipeline, most), REJECTING)
    for repo, read in zip(REJECTING.values(), records, strict=True):
        lines = map(json.loads, read)
        found += [RejectedFile(repo, line["source"], line["stage"], line["reason"]) for line in lines]
    return sorted(found, key=lambda each: (each.repo, each.source, each.stage))


def _records(connection: Connection, pipeline: str, most: int | None) -> list[bytes]:
    output = Repository(connection, pipeline).good()
    read = () if output is None else output.read_all("/rejected/*/*.jsonl")
    return list(islice((line for _, content in read for line in content.splitlines()), most))


def notes(connection: Connection, all_empty: bool = True) -> list[str]:
    """The empty repos that keep answers away: jobs without datums succeed. And a backbone of another size or without a
    scale. all_empty: whether it is also said that nothing is asked yet."""
    with parallel_reads() as reads:
        there = reads.map(lambda repo: connection.retry(Repository(connection, repo).exists, "/"), _LACKING)
        of_backbone = reads.submit(connection.retry, _backbone_notes, connection)
    found = dict(zip(_LACKING, there, strict=True))
    found["images"] = found["images"] or connection.retry(Repository(connection, FETCHED).exists, "/")
    lacking = [note for repo, note in _LACKING.items() if not found[repo] and (all_empty or repo != "queries")]
    return [*lacking, *of_backbone.result()]


def _backbone_notes(connection: Connection) -> list[str]:
    models = Repository(connection, backbones.REPO)
    backbone = backbones.current_backbone(models)
    if backbone is None:
        return []
    return [*_mismatch(backbone, ProjectJobs(connection).pipelines()), *_without_scale(backbone, models)]


def _without_scale(backbone: BackboneSpec, models: Repository) -> list[str]:
    if models.exists(f"/{SCALE_FILE}"):
        return []
    again = "push its file again" if backbone.pooling == "own" else f"`{backbones.push_command(backbone)}`"
    return [f"answers have distances without words, since the model {backbone.name} has no scale: {again}"]


def _mismatch(backbone: BackboneSpec, pipelines: Mapping[str, Any]) -> list[str]:
    sizes = set(image_sizes.sizes(pipelines.values()).values())
    if sizes <= {backbone.image_size}:
        return []
    size, takes = min(sizes - {backbone.image_size}), backbone.image_size
    again = f"`lookalike model push {backbone.name} --image-size {size}` (or {takes})"
    if backbone.pooling == "own":
        again = "`lookalike model push FILE` with its file, or with a backbone that takes them,"
    return [
        f"pictures are {size} × {size} pixels, but the backbone {backbone.name} takes {takes} × {takes}: {again} "
        "brings both to one size"
    ]
