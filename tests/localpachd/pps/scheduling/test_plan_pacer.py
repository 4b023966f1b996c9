"""The pace of plans: the steps that are held back, and the order in which a pipeline's steps become due."""

from dataclasses import replace

from localpachd.pace import AT_ONCE, Pace
from localpachd.pps.pps_entities import Job, JobState, Pipeline, PipelineState
from localpachd.pps.scheduling.plan import (
    InputView,
    JobView,
    PickUpJob,
    PipelineView,
    PlanAction,
    SchedulerSnapshot,
    SetPipelineState,
    StartJob,
    plan,
)
from localpachd.pps.scheduling.scheduler import PlanPacer

EDGES = Pipeline("default", "edges")
JOB = Job(EDGES, "1" * 32)
CREATED = PipelineView(
    pipeline=EDGES,
    version=1,
    state=PipelineState.STARTING,
    reason="",
    stopped=False,
    autoscaling=False,
    has_command=True,
    jobs=(JobView(JOB, 1, JobState.CREATED, (InputView("in", True, False),)),),
)


def due(pacing: PlanPacer, view: PipelineView) -> tuple[list[PlanAction], float | None]:
    snapshot = SchedulerSnapshot((view,))
    actions, wait = pacing.due(snapshot, plan(snapshot))
    return list(actions), wait


def first(pacing: PlanPacer, view: PipelineView) -> list[PlanAction]:
    """The first actions that become due, in rounds without pauses."""
    while True:
        actions, wait = due(pacing, view)
        if actions:
            return actions
        assert wait is not None


def running(view: PipelineView, state: JobState) -> PipelineView:
    return replace(view, state=PipelineState.RUNNING, jobs=(replace(view.jobs[0], state=state),))


def test_a_plan_is_applied_at_once() -> None:
    actions, wait = due(PlanPacer(AT_ONCE), CREATED)
    assert [type(each) for each in actions] == [SetPipelineState, PickUpJob]
    assert wait is None


def test_a_job_starts_after_its_pipeline() -> None:
    pacing = PlanPacer(Pace(0.001))
    assert first(pacing, CREATED) == [SetPipelineState(EDGES, 1, PipelineState.RUNNING, "")]
    assert first(pacing, running(CREATED, JobState.CREATED)) == [PickUpJob(JOB)]
    assert due(pacing, running(CREATED, JobState.STARTING)) == ([StartJob(JOB)], None)


def test_an_updated_pipeline_restarts_before_it_runs() -> None:
    pacing = PlanPacer(Pace(0.001))
    updated = replace(CREATED, version=2, jobs=(replace(CREATED.jobs[0], version=2),))
    (step,) = first(pacing, updated)
    assert step == SetPipelineState(EDGES, 2, PipelineState.RESTARTING, "could not get RC.")
    restarting = replace(updated, state=PipelineState.RESTARTING, reason="could not get RC.")
    assert first(pacing, restarting) == [SetPipelineState(EDGES, 2, PipelineState.RUNNING, "")]


def test_what_ends_work_is_not_held_back() -> None:
    pacing = PlanPacer(Pace(1000.0))
    without_command = replace(CREATED, has_command=False)
    actions, wait = due(pacing, without_command)
    assert [type(each).__name__ for each in actions] == ["EndJob"]
    assert wait is not None
