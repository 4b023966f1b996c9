"""What people see on the terminal: progress while jobs run, and tables of what came out. Reads no server itself."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pipelines.jobs import Job

_COLOURS = {"success": "green", "failure": "red", "killed": "red", "unrunnable": "red", "running": "cyan"}


class JobProgress:
    """A line for each pipeline that has work: datums done of total, and the state of its job."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description:<18}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self._lines: dict[str, Any] = {}
        self._said: dict[tuple[str, str], str] = {}

    def __enter__(self) -> "JobProgress":
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def look(self, jobs: Sequence[Job]) -> None:
        """Shows the state of the jobs: as moving lines on a terminal, otherwise a line whenever a job has ended."""
        if not self._console.is_terminal:
            self._say(jobs)
            return
        for pipeline, of_it in _by_pipeline(jobs):
            if pipeline not in self._lines:
                self._lines[pipeline] = self._progress.add_task(pipeline, total=None, state="")
            current = next((each for each in of_it if not each.ended), of_it[-1])
            self._progress.update(
                self._lines[pipeline],
                completed=sum(each.done for each in of_it),
                total=sum(each.total for each in of_it) or None if not current.ended else sum(e.total for e in of_it),
                state=coloured(current.state),
            )

    def _say(self, jobs: Sequence[Job]) -> None:
        for each in jobs:
            if each.ended and self._said.get((each.pipeline, each.id)) != each.state:
                self._said[each.pipeline, each.id] = each.state
                self._console.print(
                    f"{each.pipeline}: {each.state}, {each.done} of {each.total} datums", highlight=False
                )


def _by_pipeline(jobs: Iterable[Job]) -> Iterator[tuple[str, list[Job]]]:
    grouped: dict[str, list[Job]] = {}
    for each in jobs:
        grouped.setdefault(each.pipeline, []).append(each)
    return iter(grouped.items())


def coloured(state: str) -> str:
    """A state as rich markup."""
    colour = _COLOURS.get(state)
    return f"[{colour}]{state}[/{colour}]" if colour else state


def job_table(jobs: Sequence[Job]) -> Table:
    """What each pipeline did: the state of its last job, and its datums and seconds over all of the jobs given."""
    table = Table("pipeline", "job", box=None, header_style="bold", pad_edge=False)
    for name in ("processed", "skipped", "failed", "seconds"):
        table.add_column(name, justify="right")
    for pipeline, of_it in _by_pipeline(jobs):
        table.add_row(
            pipeline,
            coloured(next((each.state for each in of_it if each.state != "success"), "success")),
            str(sum(each.processed for each in of_it)),
            str(sum(each.skipped for each in of_it)),
            str(sum(each.failed for each in of_it)),
            f"{sum(each.seconds or 0.0 for each in of_it):.1f}",
        )
    return table


@contextmanager
def counting(console: Console, what: str, total: int) -> Iterator[Any]:
    """A bar that counts to `total`; gives a function that takes how many more are done."""
    columns = (TextColumn("{task.description:<18}"), BarColumn(bar_width=30), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda more: progress.advance(task, more)


def plain(text: str) -> str:
    """Text from outside, such as a file's name, made harmless: no rich markup, no control characters."""
    return escape("".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text))
