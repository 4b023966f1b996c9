"""Progress of long work: bars on a terminal, otherwise a line for each job that has ended or has to wait."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from python_pachyderm.proto.v2.pps import pps_pb2
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from pipelines.client.connection import Connection
from pipelines.client.jobs import Job, Jobs
from pipelines.cluster.gpu_waits import GpuWaits, Wait
from pipelines.commands import interrupts
from pipelines.commands.display import at_work
from pipelines.commands.terminal import coloured, console, say
from stages.wording import counted


def wait(connection: Connection, commits: Sequence[str]) -> list[Job]:
    """Waits for every job of the commit sets, showing progress; returns the jobs, upstream first."""
    with _bars() as bars:
        lines = _JobLines(bars, GpuWaits(connection))
        show = lines.look if console.is_terminal else lines.tell

        def look(jobs: Sequence[Job], infos: Mapping[str, Any]) -> None:
            interrupts.check()
            show(jobs, infos)

        return Jobs(connection).watch(commits, look)


@contextmanager
def counting(what: str, total: int | None = None, on: Console | None = None) -> Iterator[Callable[[int], None]]:
    """A bar that counts to `total`, if known; gives a function to call with each increment."""
    with _bars(on, transient=True) as bars:
        task = bars.add_task(what, total=total, state="")
        yield lambda more: bars.advance(task, more)


@contextmanager
def transferring(what: str, total: int, on: Console | None = None) -> Iterator[Callable[[int], None]]:
    """A bar over `total` bytes; gives a function to call with each increment."""
    columns = (
        TextColumn("{task.description:<18}", markup=False),
        BarColumn(bar_width=30),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    on = on or console
    with Progress(*columns, console=on, transient=True, disable=not on.is_terminal) as bars:
        task = bars.add_task(what, total=total)
        yield lambda more: bars.advance(task, more)


def _bars(on: Console | None = None, transient: bool = False) -> Progress:
    columns = (
        TextColumn("{task.description:<18}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[state]}"),
    )
    on = on or console
    return Progress(*columns, console=on, transient=transient, disable=not on.is_terminal)


class _JobLines:
    """A line for each pipeline with a job: datums done of total, the state of the job, and the datum at work. The
    reasons for which jobs wait are printed once, above."""

    def __init__(self, bars: Progress, waits: GpuWaits) -> None:
        self._bars = bars
        self._waits = waits
        self._known: tuple[Mapping[str, Any], Mapping[str, Wait]] = {}, {}
        self._tasks: dict[str, TaskID] = {}
        self._said: set[tuple[str, str]] = set()

    def look(self, jobs: Sequence[Job], infos: Mapping[str, Any]) -> None:
        """Updates the bars."""
        states = self._states(jobs, infos)
        for pipeline in dict.fromkeys(job.pipeline for job in jobs):
            of_it = [job for job in jobs if job.pipeline == pipeline]
            if pipeline not in self._tasks:
                self._tasks[pipeline] = self._bars.add_task(pipeline, total=None, state="")
            current = next((job for job in of_it if not job.ended), of_it[-1])
            self._bars.update(
                self._tasks[pipeline],
                completed=sum(job.done for job in of_it),
                # The number of datums is not known before a job has started.
                total=sum(job.total for job in of_it) if current.started else None,
                state=_state(current, states.get(pipeline, "")),
            )
            if current.ended:
                self._bars.stop_task(self._tasks[pipeline])

    def tell(self, jobs: Sequence[Job], infos: Mapping[str, Any]) -> None:
        """Prints the jobs that have ended since the last call."""
        self._states(jobs, infos)
        for job in jobs:
            if job.ended and self._is_new(job.pipeline, job.id):
                say(f"{job.pipeline}: {job.state}, {job.done:,} of {counted(job.total, 'datum', 'datums')}")

    def _states(self, jobs: Sequence[Job], infos: Mapping[str, Any]) -> dict[str, str]:
        """The states of the pipelines that wait or crash. Prints the reasons, and a wait once for each pipeline, though
        its words change with the holders of the GPUs."""
        running = {job.pipeline for job in jobs if job.state == "running"}
        if infos is not self._known[0]:  # since the last look
            self._known = infos, self._waits.look(infos, running)
        waits = self._known[1]
        states: dict[str, str] = {}
        news: dict[str, list[str]] = {}
        for job in jobs:
            info = infos.get(job.pipeline)
            if job.ended or info is None:
                continue
            wait = waits.get(job.pipeline)
            if wait is None and info.state == pps_pb2.PIPELINE_CRASHING:
                wait = Wait("crashing", info.reason)
            if wait is None or not wait.text:
                continue
            states[job.pipeline] = wait.state
            if self._is_new(job.pipeline, wait.text if wait.state == "crashing" else wait.state):
                news.setdefault(wait.text, []).append(job.pipeline)
        for text, names in news.items():
            say(f"{', '.join(names)}: {text}")
        return states

    def _is_new(self, pipeline: str, news: str) -> bool:
        """Whether this is the first time for this pipeline."""
        known = (pipeline, news) in self._said
        self._said.add((pipeline, news))
        return not known


def _state(job: Job, of_pipeline: str) -> str:
    """The state for the end of a bar; of a running job also the datum on which a worker has been longest."""
    if not job.ended and of_pipeline in ("waiting", "crashing"):
        return coloured(of_pipeline)
    if job.state != "running" or not job.busy:
        return coloured(job.state)
    more = f" (+{len(job.busy) - 1})" if len(job.busy) > 1 else ""
    return f"{escape(at_work(max(job.busy, key=lambda each: each.seconds)))}{more}"
