"""The pace of a plan: the steps that a cluster's controllers and workers take some time after they are due."""

from collections.abc import Sequence

from localpachd.pace import Pace
from localpachd.pps.entities import Pipeline, PipelineState
from localpachd.pps.scheduling.plan import Action, PickUp, SetState, Snapshot, StartJob, StartSpout

_RESTARTING = "could not get RC."  # exactly Pachyderm's text


class Pacing:
    """Holds back steps of plans: another state of a pipeline, the start of its jobs and spouts until it has that state,
    and the first step of each job."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._delays = pace.delays()

    def due(self, snapshot: Snapshot, actions: Sequence[Action]) -> tuple[Sequence[Action], float | None]:
        """The actions to apply now, and the seconds until more of them are due, None if none will be by time alone."""
        if not self._pace.late:
            return actions, None
        known = {view.pipeline: view.state for view in snapshot.pipelines}
        steps = [_restarting(each, known) for each in actions]
        changing = {each.pipeline for each in steps if isinstance(each, SetState)}
        possible = [each for each in steps if not _waits(each, changing)]
        over, wait = self._delays.over(each for each in possible if isinstance(each, SetState | PickUp))
        return [each for each in possible if each in over or not isinstance(each, SetState | PickUp)], wait


def _restarting(action: Action, known: dict[Pipeline, PipelineState]) -> Action:
    """An updated pipeline restarts before it runs."""
    if (
        isinstance(action, SetState)
        and action.version > 1
        and action.state in (PipelineState.RUNNING, PipelineState.STANDBY)
        and known[action.pipeline] is PipelineState.STARTING
    ):
        return SetState(action.pipeline, action.version, PipelineState.RESTARTING, _RESTARTING, action.stopped)
    return action


def _waits(action: Action, changing: set[Pipeline]) -> bool:
    """Whether a pipeline starts something only in the state that it is changing to."""
    match action:
        case PickUp(job) | StartJob(job):
            return job.pipeline in changing
        case StartSpout(pipeline):
            return pipeline in changing
        case _:
            return False
