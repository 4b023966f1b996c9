"""The plan: from a state to the actions that come next, without a server."""

from dataclasses import replace

from hypothesis import given, strategies as st

from localpachd.pps.pps_entities import Job, JobState, Pipeline, PipelineState
from localpachd.pps.scheduling.plan import (
    NO_COMMAND,
    CancelRun,
    ConcludeJob,
    EndJob,
    InputView,
    JobView,
    PickUpJob,
    PipelineView,
    SchedulerSnapshot,
    SetPipelineState,
    StartJob,
    StartSpout,
    plan,
    unrunnable,
)
from localpachd.pps.specs.spec import PipelineKind

EDGES = Pipeline("default", "edges")
FIRST, SECOND = Job(EDGES, "1" * 32), Job(EDGES, "2" * 32)
READY = InputView("images", finished=True, failed=False)
OPEN = InputView("images", finished=False, failed=False)
FAILED = InputView("images", finished=True, failed=True)
RUNNING = PipelineView(EDGES, 1, PipelineState.RUNNING, "", stopped=False, autoscaling=False, has_command=True)


def job(state: JobState, *inputs: InputView, job: Job = FIRST, version: int = 1) -> JobView:
    return JobView(job, version, state, inputs)


def planned(view: PipelineView, *active: Job) -> tuple[object, ...]:
    return plan(SchedulerSnapshot((view,), frozenset(active)))


def test_a_new_pipeline_starts_running() -> None:
    view = replace(RUNNING, state=PipelineState.STARTING)
    assert planned(view) == (SetPipelineState(EDGES, 1, PipelineState.RUNNING, ""),)


def test_a_pipeline_at_rest_needs_no_action() -> None:
    assert planned(RUNNING) == ()


def test_the_first_job_goes_from_created_over_starting_to_running() -> None:
    created = replace(RUNNING, jobs=(job(JobState.CREATED, OPEN), job(JobState.CREATED, job=SECOND)))
    assert planned(created) == (PickUpJob(FIRST),)
    waiting = replace(RUNNING, jobs=(job(JobState.STARTING, OPEN), job(JobState.CREATED, job=SECOND)))
    assert planned(waiting) == ()
    ready = replace(RUNNING, jobs=(job(JobState.STARTING, READY),))
    assert planned(ready) == (StartJob(FIRST),)


def test_one_job_of_a_pipeline_runs_at_a_time() -> None:
    busy = replace(RUNNING, jobs=(job(JobState.RUNNING), job(JobState.CREATED, job=SECOND)))
    assert planned(busy, FIRST) == ()


def test_a_running_job_without_a_run_is_started_again() -> None:
    orphan = replace(RUNNING, jobs=(job(JobState.RUNNING),))
    assert planned(orphan) == (StartJob(FIRST),)


def test_failed_inputs_make_a_job_unrunnable_once_all_inputs_are_finished() -> None:
    models = InputView("models", finished=True, failed=True)
    half = replace(RUNNING, jobs=(job(JobState.STARTING, FAILED, OPEN),))
    assert planned(half) == ()
    both = replace(RUNNING, jobs=(job(JobState.STARTING, FAILED, READY, models),))
    reason = "unrunnable because the following upstream pipelines failed: images, models"
    assert planned(both) == (EndJob(FIRST, JobState.UNRUNNABLE, reason),)


def test_a_pipeline_without_a_command_fails_and_its_jobs_with_it() -> None:
    view = replace(RUNNING, has_command=False, jobs=(job(JobState.CREATED, OPEN), job(JobState.CREATED, job=SECOND)))
    assert planned(view) == (
        SetPipelineState(EDGES, 1, PipelineState.FAILURE, NO_COMMAND),
        EndJob(FIRST, JobState.KILLED, NO_COMMAND),
        EndJob(SECOND, JobState.KILLED, NO_COMMAND),
    )


def test_a_stopped_pipeline_is_paused() -> None:
    assert planned(replace(RUNNING, stopped=True)) == (
        SetPipelineState(EDGES, 1, PipelineState.PAUSED, "", stopped=True),
    )
    assert planned(replace(RUNNING, state=PipelineState.PAUSED)) == (
        SetPipelineState(EDGES, 1, PipelineState.RUNNING, ""),
    )


def test_an_autoscaling_pipeline_rests_until_a_job_can_run() -> None:
    idle = replace(RUNNING, autoscaling=True)
    assert planned(idle) == (SetPipelineState(EDGES, 1, PipelineState.STANDBY, ""),)
    resting = replace(idle, state=PipelineState.STANDBY)
    assert planned(replace(resting, jobs=(job(JobState.CREATED, OPEN),))) == ()
    assert planned(replace(resting, jobs=(job(JobState.CREATED, READY),))) == (
        SetPipelineState(EDGES, 1, PipelineState.RUNNING, ""),
        PickUpJob(FIRST),
    )


def test_a_pipeline_waits_for_an_image_that_is_being_pulled() -> None:
    view = replace(RUNNING, delay="pulling image a:1", jobs=(job(JobState.STARTING, READY),))
    assert planned(view) == (SetPipelineState(EDGES, 1, PipelineState.STARTING, "pulling image a:1"),)
    assert planned(replace(view, state=PipelineState.STARTING, reason="pulling image a:1")) == ()
    assert planned(replace(view, delay="", state=PipelineState.STARTING, reason="pulling image a:1")) == (
        SetPipelineState(EDGES, 1, PipelineState.RUNNING, ""), StartJob(FIRST),
    )  # fmt: skip


def test_a_job_waits_while_its_workers_cannot_run_here() -> None:
    view = replace(RUNNING, obstacle="unschedulable: no GPU", jobs=(job(JobState.CREATED, READY),))
    assert planned(view) == (SetPipelineState(EDGES, 1, PipelineState.CRASHING, "unschedulable: no GPU"),)


def test_a_remark_for_users_is_the_reason() -> None:
    view = replace(RUNNING, remark="no GPU here: running on the CPU")
    assert planned(view) == (SetPipelineState(EDGES, 1, PipelineState.RUNNING, "no GPU here: running on the CPU"),)


def test_jobs_of_an_older_version_are_not_picked_up() -> None:
    view = replace(RUNNING, version=2, jobs=(job(JobState.CREATED, READY), job(JobState.CREATED, READY, job=SECOND)))
    assert planned(view) == ()


def test_the_run_of_a_job_that_is_over_is_cancelled() -> None:
    assert planned(RUNNING, FIRST) == (CancelRun(FIRST),)


views = st.builds(
    PipelineView,
    pipeline=st.just(EDGES),
    version=st.just(1),
    state=st.sampled_from(PipelineState),
    reason=st.sampled_from(["", "why"]),
    stopped=st.booleans(),
    autoscaling=st.booleans(),
    has_command=st.booleans(),
    jobs=st.lists(
        st.builds(
            JobView,
            job=st.sampled_from([FIRST, SECOND]),
            version=st.just(1),
            state=st.sampled_from([JobState.CREATED, JobState.STARTING, JobState.RUNNING]),
            inputs=st.lists(st.sampled_from([READY, OPEN, FAILED]), max_size=3).map(tuple),
        ),
        max_size=2,
        unique_by=lambda each: each.job,
    ).map(tuple),
    obstacle=st.sampled_from(["", "none here"]),
    delay=st.sampled_from(["", "not yet"]),
)


def _after(view: PipelineView, active: frozenset[Job], action: object) -> tuple[PipelineView, frozenset[Job]]:
    match action:
        case SetPipelineState(_, _, state, reason, _):
            return replace(view, state=state, reason=reason), active
        case PickUpJob(one):
            return _with_state(view, one, JobState.STARTING), active
        case StartJob(one):
            return _with_state(view, one, JobState.RUNNING), active | {one}
        case EndJob(one):
            return replace(view, jobs=tuple(each for each in view.jobs if each.job != one)), active
        case CancelRun(one):
            return view, active - {one}
    raise AssertionError(action)


def _with_state(view: PipelineView, one: Job, state: JobState) -> PipelineView:
    return replace(view, jobs=tuple(replace(each, state=state) if each.job == one else each for each in view.jobs))


@given(views, st.frozensets(st.sampled_from([FIRST, SECOND])))
def test_applying_the_plan_comes_to_rest_with_at_most_one_run(view: PipelineView, active: frozenset[Job]) -> None:
    for _ in range(10):
        actions = plan(SchedulerSnapshot((view,), active))
        if not actions:
            break
        assert sum(isinstance(each, StartJob) for each in actions) <= 1
        for action in actions:
            view, active = _after(view, active, action)
    assert plan(SchedulerSnapshot((view,), active)) == ()


SERVICE = replace(RUNNING, kind=PipelineKind.SERVICE)
SPOUT = replace(RUNNING, kind=PipelineKind.SPOUT, spec_commit="first")


def test_the_newest_job_that_can_be_served_takes_the_place_of_those_before_it() -> None:
    jobs = (job(JobState.RUNNING), job(JobState.STARTING, READY, job=SECOND))
    # The run of the job that is served must end first.
    assert planned(replace(SERVICE, jobs=jobs), FIRST) == (ConcludeJob(FIRST),)
    assert planned(replace(SERVICE, jobs=jobs[1:]), FIRST) == (CancelRun(FIRST),)
    assert planned(replace(SERVICE, jobs=jobs[1:])) == (StartJob(SECOND),)


def test_a_service_continues_while_the_next_inputs_are_open_or_have_failed() -> None:
    first = job(JobState.RUNNING)
    waiting = replace(SERVICE, jobs=(first, job(JobState.STARTING, OPEN, job=SECOND)))
    assert planned(waiting, FIRST) == ()
    failed = replace(SERVICE, jobs=(first, job(JobState.STARTING, FAILED, job=SECOND)))
    assert planned(failed, FIRST) == (EndJob(SECOND, JobState.UNRUNNABLE, unrunnable(["images"])),)


def test_only_the_newest_version_of_a_spout_runs_and_only_while_its_pipeline_does() -> None:
    def spouts(view: PipelineView, *active: str) -> tuple[object, ...]:
        return planned(view, *(Job(EDGES, each) for each in active))

    old = CancelRun(Job(EDGES, "first"))
    assert spouts(SPOUT) == (StartSpout(Job(EDGES, "first")),)
    assert spouts(SPOUT, "first") == ()
    # After an update, or after the pipeline was deleted and created again, which starts with version 1.
    for later in (replace(SPOUT, version=2, spec_commit="second"), replace(SPOUT, spec_commit="second")):
        assert spouts(later, "first") == (old,)
        assert spouts(later) == (StartSpout(Job(EDGES, "second")),)
    stopped = replace(SPOUT, stopped=True, state=PipelineState.PAUSED)
    assert spouts(stopped, "first") == (old,)
    assert plan(SchedulerSnapshot((), frozenset({old.job}))) == (old,)
