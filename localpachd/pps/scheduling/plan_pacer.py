"""The pace of a plan: the steps that a cluster's controllers and workers take some time after they are due."""

from collections.abc import Sequence

from localpachd.pace import Pace
from localpachd.pps.pps_entities import Pipeline, PipelineState
from localpachd.pps.scheduling.plan import (
    PickUpJob,
    PlanAction,
    SchedulerSnapshot,
    SetPipelineState,
    StartJob,
    StartSpout,
)

_RESTARTING = "could not get RC."  # exactly Pachyderm's text


class PlanPacer:
    """Holds back steps of plans: another state of a pipeline, the start of its jobs and spouts until it has that state,
    and the first step of each job."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._delays = pace.delays()

    def due(
        self, snapshot: SchedulerSnapshot, actions: Sequence[PlanAction]
    ) -> tuple[Sequence[PlanAction], float | None]:
        """The actions to apply now, and the seconds until more of them are due, None if none will be by time alone."""
        if not self._pace.late:
            return actions, None
        known = {view.pipeline: view.state for view in snapshot.pipelines}
        steps = [_restarting(each, known) for each in actions]
        changing = {each.pipeline for each in steps if isinstance(each, SetPipelineState)}
        possible = [each for each in steps if not _waits(each, changing)]
        over, wait = self._delays.over(each for each in possible if isinstance(each, SetPipelineState | PickUpJob))
        return [each for each in possible if each in over or not isinstance(each, SetPipelineState | PickUpJob)], wait


def _restarting(action: PlanAction, known: dict[Pipeline, PipelineState]) -> PlanAction:
    """An updated pipeline restarts before it runs."""
    if (
        isinstance(action, SetPipelineState)
        and action.version > 1
        and action.state in (PipelineState.RUNNING, PipelineState.STANDBY)
        and known[action.pipeline] is PipelineState.STARTING
    ):
        return SetPipelineState(action.pipeline, action.version, PipelineState.RESTARTING, _RESTARTING, action.stopped)
    return action


def _waits(action: PlanAction, changing: set[Pipeline]) -> bool:
    """Whether a pipeline starts something only in the state that it is changing to."""
    match action:
        case PickUpJob(job) | StartJob(job):
            return job.pipeline in changing
        case StartSpout(pipeline):
            return pipeline in changing
        case _:
            return False
