"""The pipelines as the plan sees them: kept in memory, read again only where something has changed."""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from localpachd.database import Database
from localpachd.pfs.changes import TopicChanges
from localpachd.pfs.pfs_entities import Repo
from localpachd.pps import job_rows
from localpachd.pps.pps_entities import Job, JobState, JobStates, Pipeline, PipelineState
from localpachd.pps.scheduling import job_base
from localpachd.pps.scheduling.plan import InputView, JobView, PipelineView
from localpachd.pps.specs import inputs, spec
from localpachd.pps.specs.spec import PipelineKind, PipelineSpec
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.tasks import ImageStatus

_READY = ImageStatus(ready=True)


@dataclass(frozen=True, slots=True)
class _Known:
    """The newest version of a pipeline: its row's number, its view without the state of the machine, its specification,
    and the repos that its jobs read."""

    seq: int
    view: PipelineView
    details: PipelineSpec
    reads: frozenset[Repo]


class PipelineViews:
    """The views of all pipelines as of the last `refresh`. For one thread."""

    def __init__(self) -> None:
        self._known: dict[Pipeline, _Known] = {}

    def refresh(self, db: Database, changed: TopicChanges) -> None:
        """Reads again the pipelines that were changed and those that read changed repos.

        A view depends only on the pipeline's row and jobs (topics: the Pipeline, its JobStates) and on the commits that
        the jobs read (topics: their repos).
        """
        stale = None if changed.everything else self._stale(changed)
        if stale is not None and not stale:
            return
        with db.read() as conn:
            waiting: dict[Pipeline, list[JobView]] = {}
            for job, version, state in job_rows.unfinished(conn, stale):
                waiting.setdefault(job.pipeline, []).append(JobView(job, version, state))
            found = {known.view.pipeline: known for known in self._read(conn, stale, waiting)}
        kept = {} if stale is None else {key: known for key, known in self._known.items() if key not in stale}
        self._known = {**kept, **found}

    def images(self) -> set[str]:
        """The images of the pipelines that should have workers now."""
        return {known.details.task.image for known in self._known.values() if _wants_workers(known.view)}

    def views(self, gpus: GpuPool, images: Mapping[str, ImageStatus]) -> tuple[PipelineView, ...]:
        """Every pipeline, newest version first, with the effect of this machine's GPUs and images on it."""
        newest_first = sorted(self._known.values(), key=lambda known: -known.seq)
        return tuple(_on_machine(known, gpus, images) for known in newest_first)

    def _stale(self, changed: TopicChanges) -> set[Pipeline]:
        rows = {topic for topic in changed.topics if isinstance(topic, Pipeline)}
        states = {topic.pipeline for topic in changed.topics if isinstance(topic, JobStates)}
        return rows | states | {key for key, known in self._known.items() if not known.reads.isdisjoint(changed.topics)}

    def _read(
        self, conn: sqlite3.Connection, only: Collection[Pipeline] | None, waiting: Mapping[Pipeline, list[JobView]]
    ) -> Iterator[_Known]:
        for row in _newest(conn, only):
            pipeline = Pipeline(row["project"], row["name"])
            details = self._spec(conn, pipeline, row["seq"])
            view = PipelineView(
                pipeline=pipeline,
                version=row["version"],
                spec_commit=row["spec_commit"],
                state=PipelineState(row["state"]),
                reason=row["reason"],
                stopped=bool(row["stopped"]),
                autoscaling=details.autoscaling,
                has_command=bool(details.task.cmd),
                kind=details.kind,
                jobs=_with_inputs(conn, waiting.get(pipeline, []), row["version"], details),
            )
            yield _Known(
                row["seq"], view, details, frozenset(job_base.repo_of(leaf) for leaf in inputs.leaves(details.input))
            )

    def _spec(self, conn: sqlite3.Connection, pipeline: Pipeline, seq: int) -> PipelineSpec:
        """The specification of a row, which never changes."""
        known = self._known.get(pipeline)
        if known is not None and known.seq == seq:
            return known.details
        return spec.from_json(conn.execute("SELECT spec FROM pipelines WHERE seq = ?", (seq,)).fetchone()["spec"])


def _newest(conn: sqlite3.Connection, only: Collection[Pipeline] | None) -> Sequence[sqlite3.Row]:
    """The rows of the newest versions, of all pipelines or `only` of these."""
    where, values = job_rows.pipeline_condition("name", only)
    found: Sequence[sqlite3.Row] = conn.execute(
        "SELECT seq, project, name, MAX(version) AS version, state, reason, stopped, spec_commit FROM pipelines "
        f"WHERE {where} GROUP BY project, name",
        values,
    ).fetchall()
    return found


def _with_inputs(
    conn: sqlite3.Connection, waiting: Sequence[JobView], version: int, details: PipelineSpec
) -> tuple[JobView, ...]:
    """A pipeline's unfinished jobs. Those whose inputs the plan needs have them: the first job of the newest version,
    and all jobs of a service."""
    found = list(waiting)
    for position, view in enumerate(waiting):
        if view.version == version:
            if view.state in (JobState.CREATED, JobState.STARTING):
                found[position] = replace(view, inputs=tuple(_inputs(conn, view.job, details)))
            if details.kind is not PipelineKind.SERVICE:
                break
    return tuple(found)


def _inputs(conn: sqlite3.Connection, job: Job, details: PipelineSpec) -> Iterator[InputView]:
    heads = job_base.inputs(conn, job)
    for leaf in inputs.leaves(details.input):
        info = heads.get(job_base.repo_of(leaf))
        # A deleted commit can never be read: that input has failed.
        yield InputView(leaf.name, info is None or info.finished is not None, info is None or bool(info.error))


def _wants_workers(view: PipelineView) -> bool:
    return not view.stopped and view.has_command and (bool(view.jobs) or not view.autoscaling)


def _on_machine(known: _Known, gpus: GpuPool, images: Mapping[str, ImageStatus]) -> PipelineView:
    wanted = known.details.task.gpus
    image = images.get(known.details.task.image, _READY)
    unavailable = "" if image.ready or image.coming else image.reason
    return replace(
        known.view,
        obstacle=_obstacle(gpus, wanted) or unavailable,
        delay=image.reason if image.coming else "",
        remark=_remark(gpus, wanted),
    )


def _obstacle(pool: GpuPool, wanted: int) -> str:
    """The reason why workers with so many GPUs each cannot run here; "" if they can."""
    if pool.schedulable(wanted):
        return ""
    return f"unschedulable: a worker asks for {wanted} GPUs, this machine has {len(pool.devices)}"


def _remark(pool: GpuPool, wanted: int) -> str:
    """A note that such workers run with fewer GPUs than they ask for; "" if they do not."""
    if not wanted or pool.leased(wanted):
        return ""
    if not pool.devices:
        return "no GPU here: running on the CPU"
    return f"only {len(pool.devices)} of {wanted} GPUs here: running on the CPU"
