"""One run of a service's or a spout's command, from placing its input to its end.

Knows no jobs and does not restart the command.
"""

import time

from localpachd.worker.commands import describe_end
from localpachd.worker.datum_set_watch import DatumSetWatch
from localpachd.worker.environment import EnvironmentProblem, datum_variables, task_variables
from localpachd.worker.layout.pfs_layout import PlacementError
from localpachd.worker.tasks import DatumWork, LogLine, LogSink, Task
from localpachd.worker.workplace import Workplace


def run_single(task: Task, workplace: Workplace, watch: DatumSetWatch, log: LogSink, work: DatumWork) -> str:
    """Runs a task's command at a workplace, in this thread, with `work` in its `/pfs`; returns how it ended. Raises
    CancellationError."""

    def note(text: str) -> None:
        log(LogLine("", False, text))

    watch.begin(work.id)
    layout = workplace.layout
    pipes = layout.lazy_pipes(workplace.stores.pipes, note, watch.end)
    try:
        variables = datum_variables(work, layout.shown)
        layout.place(work, {**task_variables(task), **variables}, pipes, watch.check)
        note("beginning to run user code")
        begun = time.monotonic()
        process = workplace.start(
            task.cmd, task.stdin, variables, lambda text: log(LogLine("", True, text)), watch.notify
        )
        try:
            ended = watch.wait(lambda: process.ended) or describe_end(process)
        finally:
            process.stop()
        note(f"user code ended after {time.monotonic() - begun:.3f}s: {ended}")
        return ended
    except (PlacementError, EnvironmentProblem) as problem:
        return str(problem)
    finally:
        watch.finish()
        pipes.close()
