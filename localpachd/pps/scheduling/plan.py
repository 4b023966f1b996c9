"""The plan: a pure function from the present state to the actions that come next. The scheduler applies them. Recovery
needs no special case: a job that was running when the server died looks like any job without an active run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localpachd.pps.pps_entities import Job, JobState, Pipeline, PipelineState
from localpachd.pps.specs.spec import PipelineKind

NO_COMMAND = "nothing to run: no transform.cmd"


@dataclass(frozen=True, slots=True)
class InputView:
    """A commit that a job reads, under its input's name."""

    name: str
    finished: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class JobView:
    """An unfinished job. `inputs` are filled in for the first job of a pipeline, for which the others wait, and for all
    jobs of a service, of which the newest runs."""

    job: Job
    version: int
    state: JobState
    inputs: tuple[InputView, ...] = ()


@dataclass(frozen=True, slots=True)
class PipelineView:
    """The newest version of a pipeline with its unfinished jobs in order of creation. `spec_commit` is the id of the
    commit that marks the version; it tells a pipeline from an earlier one of the same name and version, and takes the
    place of a job's id for the run of a spout.

    `obstacle` says why its workers cannot run on this machine, `delay` what they are waiting for, `remark` what a user
    should know while they run.
    """

    pipeline: Pipeline
    version: int
    state: PipelineState
    reason: str
    stopped: bool
    autoscaling: bool
    has_command: bool
    spec_commit: str = ""
    kind: PipelineKind = PipelineKind.TRANSFORM
    jobs: tuple[JobView, ...] = ()
    obstacle: str = ""
    delay: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class SchedulerSnapshot:
    """All pipelines, and the active runs of this process: jobs and spouts."""

    pipelines: tuple[PipelineView, ...]
    active: frozenset[Job] = frozenset()


@dataclass(frozen=True, slots=True)
class SetPipelineState:
    """Give a version of a pipeline another state."""

    pipeline: Pipeline
    version: int
    state: PipelineState
    reason: str
    stopped: bool = False
    """Whether the pipeline was stopped when this was planned; if that has changed, nothing is done."""


@dataclass(frozen=True, slots=True)
class EndJob:
    """End an unfinished job that can never run: as UNRUNNABLE if its inputs failed, else as KILLED."""

    job: Job
    state: JobState
    reason: str


@dataclass(frozen=True, slots=True)
class _JobAction:
    job: Job


class PickUpJob(_JobAction):
    """Move a CREATED job to STARTING."""


class StartJob(_JobAction):
    """Start the run of a job whose inputs are all finished."""


class CancelRun(_JobAction):
    """Cancel the run of a job that is over, or of a spout that is not to run any more."""


class ConcludeJob(_JobAction):
    """End a service's job as successful: a newer one takes its place."""


class StartSpout(_JobAction):
    """Start the run of a version of a spout: see `PipelineView.spec_commit`."""


PlanAction = SetPipelineState | PickUpJob | StartJob | EndJob | CancelRun | ConcludeJob | StartSpout


def plan(snapshot: SchedulerSnapshot) -> tuple[PlanAction, ...]:
    """The actions that are due, none when nothing is. They do not depend on each other. Before an action is applied,
    its reason must be checked again: the state may have changed since the snapshot."""
    unfinished = {view.job for pipeline in snapshot.pipelines for view in pipeline.jobs}
    spouts = {
        Job(view.pipeline, view.spec_commit)
        for view in snapshot.pipelines
        if view.kind is PipelineKind.SPOUT and _state(view, None)[0] is PipelineState.RUNNING
    }
    actions: list[PlanAction] = [CancelRun(run) for run in sorted(snapshot.active - unfinished - spouts)]
    for pipeline in snapshot.pipelines:
        actions.extend(_for_pipeline(pipeline, snapshot.active))
    taken = {run.pipeline for run in snapshot.active}  # the run of the version before may still be ending
    actions.extend(StartSpout(run) for run in sorted(spouts) if run.pipeline not in taken)
    return tuple(actions)


def unrunnable(inputs: Sequence[str]) -> str:
    """The reason of a job whose inputs, named here, failed. Pachyderm, too, says pipelines and names inputs."""
    return f"unrunnable because the following upstream pipelines failed: {', '.join(inputs)}"


def _for_pipeline(view: PipelineView, active: frozenset[Job]) -> Iterator[PlanAction]:
    first = next((each for each in view.jobs if each.version == view.version), None)
    state, reason = _state(view, first)
    if (state, reason) != (view.state, view.reason):
        yield SetPipelineState(view.pipeline, view.version, state, reason, view.stopped)
    if state is PipelineState.FAILURE:
        for each in view.jobs:
            yield EndJob(each.job, JobState.KILLED, reason)
    elif state in (PipelineState.RUNNING, PipelineState.STANDBY) and first is not None:
        if view.kind is PipelineKind.SERVICE:
            yield from _for_service(view, active)
        else:
            yield from _for_job(view, first, active)


def _for_service(view: PipelineView, active: frozenset[Job]) -> Iterator[PlanAction]:
    """The newest job whose inputs are finished is served; it takes the place of those before it."""
    ready = []
    for each in view.jobs:
        if each.version != view.version or each.state is JobState.FINISHING:
            continue
        if each.state is JobState.CREATED:
            yield PickUpJob(each.job)
        elif each.state is not JobState.STARTING:
            ready.append(each.job)
        elif all(one.finished for one in each.inputs):
            failed = [one.name for one in each.inputs if one.failed]
            if failed:
                yield EndJob(each.job, JobState.UNRUNNABLE, unrunnable(failed))
            else:
                ready.append(each.job)
    for job in ready[:-1]:
        yield ConcludeJob(job)
    # The run before must have released its ports.
    if ready and not any(job.pipeline == view.pipeline for job in active):
        yield StartJob(ready[-1])


def _state(view: PipelineView, first: JobView | None) -> tuple[PipelineState, str]:
    if not view.has_command:
        return PipelineState.FAILURE, NO_COMMAND
    if view.stopped:
        return PipelineState.PAUSED, ""
    if view.autoscaling and (first is None or not _ready(first)):
        return PipelineState.STANDBY, view.remark
    if view.obstacle:
        return PipelineState.CRASHING, view.obstacle
    if view.delay:
        return PipelineState.STARTING, view.delay
    return PipelineState.RUNNING, view.remark


def _ready(job: JobView) -> bool:
    return job.state is not JobState.CREATED or all(each.finished for each in job.inputs)


def _for_job(view: PipelineView, job: JobView, active: frozenset[Job]) -> Iterator[PlanAction]:
    if job.job in active or job.state is JobState.FINISHING:  # it ends with its output
        return
    if job.state is JobState.CREATED:
        # Autoscaling workers are only started for a job that can run.
        if not view.autoscaling or _ready(job):
            yield PickUpJob(job.job)
        return
    if job.state is JobState.STARTING:
        if not all(each.finished for each in job.inputs):
            return
        failed = [each.name for each in job.inputs if each.failed]
        if failed:
            yield EndJob(job.job, JobState.UNRUNNABLE, unrunnable(failed))
            return
    yield StartJob(job.job)
