"""One run of a service's or a spout's command, from placing its input to its end.

Knows no jobs and does not restart the command.
"""

import time
from collections.abc import Callable

from localpachd.worker.commands import describe_end
from localpachd.worker.datum_set_watch import DatumSetWatch
from localpachd.worker.environment import EnvironmentProblem, datum_variables, task_variables
from localpachd.worker.layout.lazy_pipes import LazyPipes
from localpachd.worker.layout.pfs_layout import PlacementError
from localpachd.worker.tasks import DatumWork, LogLine, Task
from localpachd.worker.workplace import Workplace


class SingleRun:
    """Runs a task's command at one workplace. Everything happens in the thread that calls `run`."""

    def __init__(self, task: Task, workplace: Workplace, watch: DatumSetWatch, log: Callable[[LogLine], None]) -> None:
        self._task = task
        self._workplace = workplace
        self._watch = watch
        self._log = log

    def run(self, work: DatumWork) -> str:
        """Runs the command with `work` in its `/pfs`; returns how it ended. Raises Cancelled."""
        self._watch.begin(work.id)
        pipes = self._workplace.layout.lazy_pipes(self._workplace.stores.pipes, self._note, self._watch.end)
        try:
            return self._run(work, pipes)
        except (PlacementError, EnvironmentProblem) as problem:
            return str(problem)
        finally:
            self._watch.finish()
            pipes.close()

    def _run(self, work: DatumWork, pipes: LazyPipes) -> str:
        layout = self._workplace.layout
        variables = datum_variables(work, layout.shown)
        layout.place(work, {**task_variables(self._task), **variables}, pipes, self._watch.check)
        self._note("beginning to run user code")
        begun = time.monotonic()
        process = self._workplace.start(
            self._task.cmd, self._task.stdin, variables, self._user_line, self._watch.notify
        )
        try:
            ended = self._watch.wait(lambda: process.ended) or describe_end(process)
        finally:
            process.stop()
        self._note(f"user code ended after {time.monotonic() - begun:.3f}s: {ended}")
        return ended

    def _user_line(self, text: str) -> None:
        self._log(LogLine("", True, text))

    def _note(self, text: str) -> None:
        self._log(LogLine("", False, text))
