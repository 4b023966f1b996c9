"""Progress of long work: bars on a terminal, otherwise a line for each job that has ended or has to wait, and now and
then one for each that runs."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

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

from pipelines.client.jobs.jobs import Job, ProjectJobs, current
from pipelines.client.server.connection import Connection
from pipelines.cluster.gpu_waits import PipelineWait
from pipelines.cluster.job_waits import JobWaits
from pipelines.commands.kit import interrupts
from pipelines.commands.kit.display import at_work
from pipelines.commands.kit.estimates import JobEstimate, datums_done, is_idle, result, time_left
from pipelines.commands.kit.terminal import coloured, console, is_brief, say
from stages.datum.text_format import counted

_TELL_EVERY = 30.0
"""Seconds between two lines about a running job where there is no terminal."""


_COLUMNS = (TextColumn("{task.description:<18}", markup=False), BarColumn(bar_width=30))


def wait(connection: Connection, commits: Sequence[str], only: Collection[str] = ()) -> list[Job]:
    """Waits for every job of the commit sets, showing progress; returns the jobs, upstream first. only: see
    `ProjectJobs.watch`."""
    with _bars() as bars:
        lines = _JobLines(bars, JobWaits(connection))
        show = lines.look if console.is_terminal else lines.tell

        def look(jobs: Sequence[Job], infos: Mapping[str, Any]) -> None:
            interrupts.check()
            show(current(jobs), infos)

        return ProjectJobs(connection).watch(commits, look, only)


@contextmanager
def counting(what: str, total: int | None = None, on: Console | None = None) -> Iterator[Callable[[int], None]]:
    """A bar that counts to `total`, if known; gives a function to call with each increment."""
    on = on or console
    columns = (*_COLUMNS, MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, console=on, transient=True, disable=not on.is_terminal) as bars:
        task = bars.add_task(what, total=total)
        yield lambda more: bars.advance(task, more)


@contextmanager
def transferring(what: str, total: int, on: Console | None = None) -> Iterator[Callable[[int], None]]:
    """A bar over `total` bytes; gives a function to call with each increment."""
    on = on or console
    columns = (*_COLUMNS, DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=on, transient=True, disable=not on.is_terminal) as bars:
        task = bars.add_task(what, total=total)
        yield lambda more: bars.advance(task, more)


def _bars() -> Progress:
    columns = (
        *_COLUMNS,
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[state]}"),
    )
    return Progress(*columns, console=console, transient=is_brief(), disable=not console.is_terminal)


class _JobLines:
    """A line for each pipeline with a job: datums done of total, the state of the job, the datum at work and the time
    left. The reasons for which jobs wait, and attempts that failed, are printed once, above."""

    def __init__(self, bars: Progress, waits: JobWaits) -> None:
        self._bars = bars
        self._waits = waits
        self._known: tuple[Mapping[str, Any], Mapping[str, PipelineWait]] = {}, {}
        self._before: Mapping[str, PipelineWait] = {}
        self._tasks: dict[str, TaskID] = {}
        self._said: set[tuple[str, str]] = set()
        self._estimates: dict[tuple[str, str], JobEstimate] = {}
        self._told: dict[str, float] = {}

    def look(self, jobs: Sequence[Job], infos: Mapping[str, Any]) -> None:
        """Updates the bars."""
        waits = self._news(jobs, infos)
        for pipeline in dict.fromkeys(job.pipeline for job in jobs):
            of_it = [job for job in jobs if job.pipeline == pipeline]
            if pipeline not in self._tasks:
                self._tasks[pipeline] = self._bars.add_task(pipeline, total=None, state="", count="")
            current = next((job for job in of_it if not job.ended), of_it[-1])
            done, total = (sum(getattr(job, name) for job in of_it) for name in ("done", "total"))
            # The number of datums is not known before a job has started; a bar of none is full.
            known = {"total": total or 1, "completed": sum(map(datums_done, of_it)) if total else 1}
            self._bars.update(
                self._tasks[pipeline],
                **(known if current.started else {"total": None, "completed": done}),
                count=f"{done}/{total}" if total else "",
                state=self._state(current, waits.get(pipeline)),
            )
            if current.ended:
                self._bars.stop_task(self._tasks[pipeline])

    def tell(self, jobs: Sequence[Job], infos: Mapping[str, Any]) -> None:
        """Prints the jobs that have ended since the last call, and now and then those that run."""
        waits = self._news(jobs, infos)
        for job in _worth_a_line(jobs):
            if job.ended:
                if not is_brief() and self._is_new(job.pipeline, "idle" if is_idle(job) else job.id):
                    say(f"{job.pipeline}: {result(job)}")
            elif job.state == "running" and job.pipeline not in waits:
                now = time.monotonic()
                if now - self._told.setdefault(job.pipeline, now) >= _TELL_EVERY:
                    self._told[job.pipeline] = now
                    say(f"{job.pipeline}: {', '.join((_done(job), *self._details(job)))}")

    def _news(self, jobs: Sequence[Job], infos: Mapping[str, Any]) -> Mapping[str, PipelineWait]:
        """The waits by pipeline. Prints those that last from one look at the pipelines to the next, each kind once for
        each pipeline, though its words change with the holders of GPUs and the counts of jobs; and the attempts that
        failed."""
        if infos is not self._known[0]:  # since the last look
            self._before = self._known[1]
            self._known = infos, self._waits.look(infos, jobs)
        waits = self._known[1]
        news: dict[str, list[str]] = {}
        busy = {job.pipeline for job in jobs if not job.ended}
        for pipeline, wait in waits.items():
            if wait.state == "waiting" and pipeline not in self._before:
                continue
            if (pipeline in busy or wait.state == "paused") and self._is_new(pipeline, _kind(wait)):
                news.setdefault(wait.text, []).append(pipeline)
        for text, names in news.items():
            say(f"{', '.join(names)}: {text}")
        for job in jobs:
            for attempt in job.attempts:
                if self._is_new(job.pipeline, attempt):
                    say(f"{job.pipeline}: {attempt}")
        return waits

    def _is_new(self, pipeline: str, news: str) -> bool:
        """Whether this is the first time for this pipeline."""
        known = (pipeline, news) in self._said
        self._said.add((pipeline, news))
        return not known

    def _state(self, job: Job, wait: PipelineWait | None) -> str:
        """The end of a bar: a state, or what a running job is doing."""
        if job.ended:
            return coloured(job.state) if job.total else coloured(result(job))
        if wait is not None and wait.state != "running":
            return coloured(wait.state)
        return escape(", ".join(self._details(job))) or coloured(job.state)

    def _details(self, job: Job) -> list[str]:
        """The datum on which a worker of a running job has been longest, and the time left."""
        if job.state != "running":
            return []
        more = f" (+{len(job.busy) - 1})" if len(job.busy) > 1 else ""
        at = [f"{at_work(max(job.busy, key=lambda each: each.seconds))}{more}"] if job.busy else []
        left = self._estimates.setdefault((job.pipeline, job.id), JobEstimate()).left(job, time.monotonic())
        return [*at, time_left(left)] if left is not None else at


def _worth_a_line(jobs: Sequence[Job]) -> list[Job]:
    """The jobs without those that had nothing to do, if another job of their pipeline has."""
    busy = {job.pipeline for job in jobs if not is_idle(job)}
    return [job for job in jobs if not is_idle(job) or job.pipeline not in busy]


def _kind(wait: PipelineWait) -> str:
    """The part of a wait that stays the same while the wait lasts."""
    varies = wait.state == "waiting" and wait.text.startswith("wait")
    return " ".join(wait.text.split()[:3]) if varies else wait.text


def _done(job: Job) -> str:
    return f"{job.done:,} of {counted(job.total, 'datum', 'datums')}"
