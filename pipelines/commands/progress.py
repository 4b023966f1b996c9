"""Progress of long work: bars on a terminal, otherwise a line for each job that has ended."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

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
from pipelines.commands import interrupts
from pipelines.commands.terminal import coloured, console, say
from stages.wording import counted

_WAITING = frozenset({"created", "starting"})


def wait(connection: Connection, commits: Sequence[str]) -> list[Job]:
    """Waits for every job of the commit sets, showing progress; returns the jobs, upstream first."""
    with _bars() as bars:
        lines = _JobLines(bars)
        show = lines.look if console.is_terminal else lines.tell

        def look(jobs: Sequence[Job], troubles: Mapping[str, str]) -> None:
            interrupts.check()
            show(jobs, troubles)

        return Jobs(connection).watch(commits, look)


@contextmanager
def counting(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar that counts to `total`, if known; gives a function to call with each increment."""
    with _bars(transient=True) as bars:
        task = bars.add_task(what, total=total, state="")
        yield lambda more: bars.advance(task, more)


@contextmanager
def transferring(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar over `total` bytes; gives a function to call with each increment."""
    columns = (
        TextColumn("{task.description:<18}", markup=False),
        BarColumn(bar_width=30),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task(what, total=total)
        yield lambda more: bars.advance(task, more)


def _bars(transient: bool = False) -> Progress:
    columns = (
        TextColumn("{task.description:<18}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[state]}"),
    )
    return Progress(*columns, console=console, transient=transient, disable=not console.is_terminal)


class _JobLines:
    """A line for each pipeline with a job: datums done of total, and the state of the job."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}
        self._said: set[tuple[str, str]] = set()

    def look(self, jobs: Sequence[Job], troubles: Mapping[str, str]) -> None:
        """Updates the bars."""
        for pipeline in dict.fromkeys(job.pipeline for job in jobs):
            of_it = [job for job in jobs if job.pipeline == pipeline]
            if pipeline not in self._tasks:
                self._tasks[pipeline] = self._bars.add_task(pipeline, total=None, state="")
            current = next((job for job in of_it if not job.ended), of_it[-1])
            self._bars.update(
                self._tasks[pipeline],
                completed=sum(job.done for job in of_it),
                # The number of datums is not known before a job has started.
                total=None if current.state in _WAITING else sum(job.total for job in of_it),
                state=_state(current, troubles),
            )
            if current.ended:
                self._bars.stop_task(self._tasks[pipeline])

    def tell(self, jobs: Sequence[Job], troubles: Mapping[str, str]) -> None:
        """Prints the jobs that have ended, and the pipelines that crash, since the last call."""
        for job in jobs:
            trouble = "" if job.ended else troubles.get(job.pipeline, "")
            news = f"{job.state}, {job.done:,} of {counted(job.total, 'datum', 'datums')}" if job.ended else trouble
            if news and (job.pipeline, job.id + trouble) not in self._said:
                self._said.add((job.pipeline, job.id + trouble))
                say(f"{job.pipeline}: {news}")


def _state(job: Job, troubles: Mapping[str, str]) -> str:
    if not job.ended and job.pipeline in troubles:
        return f"{coloured('crashing')} {troubles[job.pipeline]}"
    return coloured(job.state)
