"""What should happen next: a pure function from what is to what to do. The scheduler applies it; recovery is no special
case, since a job that was running when the server died looks like one that nobody has in hand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localpachd.pps.entities import Job, JobState, Pipeline, PipelineState
from localpachd.pps.spec import Kind

NO_COMMAND = "nothing to run: no transform.cmd"


@dataclass(frozen=True, slots=True)
class InputView:
    """A commit that a job reads, under its input's name."""

    name: str
    finished: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class JobView:
    """An unfinished job. `inputs` are filled in for the first of its pipeline, for which the others wait, and for all
    of a service, where the newest counts."""

    job: Job
    version: int
    state: JobState
    inputs: tuple[InputView, ...] = ()


@dataclass(frozen=True, slots=True)
class PipelineView:
    """The newest version of a pipeline with its unfinished jobs in order of creation. `spec_commit` is the id of the
    commit that marks the version: it differs even where a pipeline was deleted and made again.

    `obstacle` says why its workers cannot be had on this machine, `delay` what they wait for that will come, `remark`
    what a user should know while they run.
    """

    pipeline: Pipeline
    version: int
    state: PipelineState
    reason: str
    stopped: bool
    autoscaling: bool
    has_command: bool
    spec_commit: str = ""
    kind: Kind = Kind.TRANSFORM
    jobs: tuple[JobView, ...] = ()
    obstacle: str = ""
    delay: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All pipelines, and the jobs, and versions of spouts by their spec commits, that this process has in hand."""

    pipelines: tuple[PipelineView, ...]
    in_hand: frozenset[Job] = frozenset()
    spouts: frozenset[tuple[Pipeline, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class SetState:
    """Give a version of a pipeline another state."""

    pipeline: Pipeline
    version: int
    state: PipelineState
    reason: str
    stopped: bool = False
    """Whether it was stopped when this was decided; if that has changed, the decision is void."""


@dataclass(frozen=True, slots=True)
class PickUp:
    """Move a CREATED job to STARTING."""

    job: Job


@dataclass(frozen=True, slots=True)
class Run:
    """Take a job whose inputs are all there in hand."""

    job: Job


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End a job whose inputs failed as UNRUNNABLE."""

    job: Job
    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Kill an unfinished job that can never run."""

    job: Job
    reason: str


@dataclass(frozen=True, slots=True)
class LetGo:
    """Cancel what is in hand of a job that is over."""

    job: Job


@dataclass(frozen=True, slots=True)
class Conclude:
    """End a service's job well: a newer one takes its place."""

    job: Job


@dataclass(frozen=True, slots=True)
class StartSpout:
    """Take a version of a spout in hand."""

    pipeline: Pipeline
    spec_commit: str


@dataclass(frozen=True, slots=True)
class StopSpout:
    """Cancel a version of a spout that is in hand."""

    pipeline: Pipeline
    spec_commit: str


Action = SetState | PickUp | Run | GiveUp | Stop | LetGo | Conclude | StartSpout | StopSpout


def plan(snapshot: Snapshot) -> tuple[Action, ...]:
    """The actions that bring the snapshot nearer to rest, none when it is at rest. Each holds on its own: whoever
    applies one must look again whether it still does."""
    unfinished = {view.job for pipeline in snapshot.pipelines for view in pipeline.jobs}
    actions: list[Action] = [LetGo(job) for job in sorted(snapshot.in_hand - unfinished)]
    for pipeline in snapshot.pipelines:
        actions.extend(_for_pipeline(pipeline, snapshot.in_hand))
    actions.extend(_for_spouts(snapshot))
    return tuple(actions)


def unrunnable(inputs: Sequence[str]) -> str:
    """The reason of a job whose inputs, named here, failed. The original says pipelines and names inputs, too."""
    return f"unrunnable because the following upstream pipelines failed: {', '.join(inputs)}"


def _for_pipeline(view: PipelineView, in_hand: frozenset[Job]) -> Iterator[Action]:
    first = next((each for each in view.jobs if each.version == view.version), None)
    state, reason = _state(view, first)
    if (state, reason) != (view.state, view.reason):
        yield SetState(view.pipeline, view.version, state, reason, view.stopped)
    if state is PipelineState.FAILURE:
        for each in view.jobs:
            yield Stop(each.job, reason)
    elif state in (PipelineState.RUNNING, PipelineState.STANDBY) and first is not None:
        if view.kind is Kind.SERVICE:
            yield from _for_service(view, in_hand)
        else:
            yield from _for_job(view, first, in_hand)


def _for_spouts(snapshot: Snapshot) -> Iterator[Action]:
    wanted = {
        (view.pipeline, view.spec_commit)
        for view in snapshot.pipelines
        if view.kind is Kind.SPOUT and _state(view, None)[0] is PipelineState.RUNNING
    }
    for pipeline, spec_commit in sorted(snapshot.spouts - wanted):
        yield StopSpout(pipeline, spec_commit)
    taken = {pipeline for pipeline, _ in snapshot.spouts}
    for pipeline, spec_commit in sorted(wanted):
        if pipeline not in taken:  # the version before it may still be ending
            yield StartSpout(pipeline, spec_commit)


def _for_service(view: PipelineView, in_hand: frozenset[Job]) -> Iterator[Action]:
    """The newest job whose inputs are whole is served; it takes the place of those before it."""
    ready = []
    for each in view.jobs:
        if each.version != view.version:
            continue
        if each.state is JobState.CREATED:
            yield PickUp(each.job)
        elif each.state is not JobState.STARTING:
            ready.append(each.job)
        elif all(one.finished for one in each.inputs):
            failed = [one.name for one in each.inputs if one.failed]
            if failed:
                yield GiveUp(each.job, unrunnable(failed))
            else:
                ready.append(each.job)
    for job in ready[:-1]:
        yield Conclude(job)
    # The one before must have let go of its ports.
    if ready and not any(job.pipeline == view.pipeline for job in in_hand):
        yield Run(ready[-1])


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


def _for_job(view: PipelineView, job: JobView, in_hand: frozenset[Job]) -> Iterator[Action]:
    if job.job in in_hand:
        return
    if job.state is JobState.CREATED:
        # Autoscaling workers are only started for a job that can run.
        if not view.autoscaling or _ready(job):
            yield PickUp(job.job)
        return
    if job.state is JobState.STARTING:
        if not all(each.finished for each in job.inputs):
            return
        failed = [each.name for each in job.inputs if each.failed]
        if failed:
            yield GiveUp(job.job, unrunnable(failed))
            return
    yield Run(job.job)
