"""Tables and reports on the terminal: jobs, precision, the status, result sheets. Contacts no server itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from pipelines.client.jobs.datums import DatumFailure
from pipelines.client.jobs.jobs import Job
from pipelines.client.jobs.workers import BusyWorker
from pipelines.cluster.job_waits import behind
from pipelines.cluster.pipeline_status import FETCHED, REJECTING, PipelineStatus, ProjectStatus, RejectedFile
from pipelines.commands.kit.terminal import coloured, console, display_path, files, plain_table, say, say_all
from pipelines.library import result_sheets
from pipelines.library.picture_sources import words_of_skipped
from pipelines.library.result_sheets import ResultSheet
from stages.datum.text_format import counted, distance, first_of

_MOST_REJECTIONS = 20
MOST_COUNTED = 10_000
"""Rejected files of a repo that are read to be counted."""
_MOST_TROUBLES = 3
_MOST_QUERIES = 5
_MOST_WORKERS = 3
_NUMBERS = ("processed", "skipped", "failed", "seconds", "rejected")


def job_table(jobs: Sequence[Job], rejected: Sequence[RejectedFile]) -> Table:
    """The results by pipeline: the state of its jobs, their datums and seconds in total, and its rejected files."""
    grouped: dict[str, list[Job]] = {}
    for each in jobs:
        grouped.setdefault(each.pipeline, []).append(each)
    table = plain_table("pipeline", "job", numbers=_NUMBERS)
    for pipeline, of_it in grouped.items():
        state = next((each.state for each in of_it if each.state != "success"), "success")
        table.add_row(pipeline, coloured(state), *_counts(of_it), _rejected(pipeline, rejected))
    return table


def quality_table(quality: Mapping[str, tuple[float, float]]) -> Table:
    """precision@1 and precision@3 by method."""
    table = plain_table("", numbers=("precision@1", "precision@3"))
    for method, (first, three) in quality.items():
        table.add_row(method, f"{first:.2f}", f"{three:.2f}")
    return table


def show_status(status: ProjectStatus) -> None:
    """Prints every pipeline, and the reasons of failures and rejections."""
    if status.pipelines:
        # Collapsed, or the names do not fit into 80 columns.
        table = plain_table("pipeline", "state", "job", numbers=_NUMBERS, collapse_padding=True)
        for each in status.pipelines:
            shown = [*each.ahead[:1], *([each.job] if each.job else [])]
            first, *more = [(coloured(job.state), *_counts([job])) for job in shown] or [("none", *_counts([]))]
            table.add_row(each.name, coloured(each.state), *first, _rejected(each.name, status.rejected))
            for row in more:
                table.add_row("", "", *row, "")
        console.print(table)
    if status.missing:
        say(f"not deployed: {', '.join(status.missing)}: run `lookalike deploy`")
    _show_reasons(status.pipelines)
    show_rejections(status.rejected)
    for note in status.notes:
        say(note)


def show_sheets(sheets: Iterable[ResultSheet]) -> None:
    """Prints the paths of result sheets, and their notes."""
    for sheet in sheets:
        say(
            f"{sheet.entry}: {display_path(sheet.directory / 'index.html')}, "
            f"{display_path(sheet.directory / 'grid.png')}"
        )
        for note in sheet.notes:
            say(f"  {note}")


def show_answers(sheets: Iterable[ResultSheet], k: int | None) -> None:
    """Prints result sheets with the nearest pictures of their first queries."""
    left = _MOST_QUERIES
    for sheet in sheets:
        found = result_sheets.answers(sheet, k)
        show_sheets([sheet])
        for query in found[:left]:
            _show_nearest(sheet, query)
        if len(found) > left:
            say(f"  and {counted(len(found) - left, 'query', 'queries')} more: see the sheet")
        left = max(0, left - len(found))


def show_lines(answers: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Prints answers in the form of lines of neighbors.jsonl, each below its name."""
    for name, line in answers:
        say(f"{name}:")
        _show_neighbours(line)


def _show_nearest(sheet: ResultSheet, query: Mapping[str, Any]) -> None:
    if query["sources"] != [sheet.entry]:
        say(f"  {', '.join(query['sources'])}")
    _show_neighbours(query)


def _show_neighbours(query: Mapping[str, Any]) -> None:
    words = [each.get("likeness") or "" for each in query["neighbors"]]  # another version's sheets have none
    width = max(map(len, words), default=0)
    if unread := query.get("unread"):
        say(f"  the model did not read the end: “{unread}”")
    if query.get("text") or query.get("without"):
        say("  (by distance from words, which is on another scale than between pictures)")
    for each, word in zip(query["neighbors"], words, strict=True):
        column = f"{word:<{width}}  " if width else ""
        say(f"  {distance(each['distance']):>9}  {column}{', '.join(each['sources'])}")


def sheet_data(sheet: ResultSheet, k: int | None) -> dict[str, Any]:
    """A result sheet with its answers, for --json."""
    return {**asdict(sheet), "queries": result_sheets.answers(sheet, k)}


def _counts(jobs: Sequence[Job]) -> list[str]:
    """The numeric cells of a table's row."""
    if not jobs:
        return [""] * 4
    numbers = [sum(getattr(each, name) for each in jobs) for name in ("processed", "skipped", "failed")]
    return [*map(str, numbers), f"{sum(each.seconds or 0.0 for each in jobs):.1f}"]


def _rejected(pipeline: str, rejected: Sequence[RejectedFile]) -> str:
    """The cell of a pipeline's rejected files; empty for a pipeline that rejects none by design."""
    repo = REJECTING.get(pipeline)
    own = [each for each in rejected if each.repo == repo and (each.stage == FETCHED) == (pipeline == FETCHED)]
    count = sum(not each.is_skipped for each in own)
    return f"{count}{'+' if len(own) >= MOST_COUNTED else ''}" if repo else ""


def _show_reasons(pipelines: Iterable[PipelineStatus]) -> None:
    by_reason: dict[str, list[str]] = {}
    for each in pipelines:
        if each.reason:
            by_reason.setdefault(each.reason, []).append(each.name)
    for reason, names in by_reason.items():
        say(f"{', '.join(names)}: {_line(reason)}")
    by_trouble: dict[str, list[str]] = {}
    for each in pipelines:
        for trouble in each.troubles[:_MOST_TROUBLES]:
            by_trouble.setdefault(_line(trouble), []).append(each.name)
    for trouble, names in by_trouble.items():
        say(f"workers of {', '.join(names)} cannot start: {trouble}")
    for each in pipelines:
        if each.job is not None and each.ahead:
            say(f"{each.name}: commit {each.job.id[:12]} waits behind {behind(each.ahead)}")
        if each.current is not None:
            if each.state != "waiting":
                _show_workers(each.current)
            say_all(f"{each.name}: {attempt}" for attempt in each.current.attempts)
            say_all(f"{each.name}, the GPU: {_line(notice)}" for notice in each.on_gpus)
            _show_failures(each.current, each.failures)


def _show_workers(job: Job) -> None:
    """The datums that the workers of a running job are busy with: on a cluster all that moves until a set ends."""
    if not job.busy:
        return
    longest = sorted(job.busy, key=lambda each: -each.seconds)
    say(f"{job.pipeline} is at work: {first_of(list(map(at_work, longest)), _MOST_WORKERS, '; ')}")


def at_work(worker: BusyWorker) -> str:
    """A worker's datum, the time since it took it, and how much of it is done, if that is known."""
    if not worker.paths:
        return "between datums"
    within = worker.progress
    of = f" of {within.total:,}" if within and within.total else ""
    far = f", {within.done:,}{of} {within.unit}" if within else ""
    return f"{_inputs(worker.paths)} for {worker.seconds:,.0f} s{far}"


def _show_failures(job: Job, failures: Sequence[DatumFailure]) -> None:
    for each in failures:
        say(f"{job.pipeline} failed on {_datum(each)}: {_line(each.reason)}")
    more = job.failed - len(failures)
    if more > 0:
        say(f"{job.pipeline} failed on {more:,} more: see `lookalike jobs {job.pipeline}@{job.id}`")
    if job.ended and job.reason and not failures:
        say(f"{job.pipeline}: {_line(job.reason)}")


def _line(text: str) -> str:
    return " ".join(text.split())


def _datum(failure: DatumFailure) -> str:
    return _inputs(failure.paths) or f"datum {failure.datum[:12]}"


def _inputs(paths: Sequence[str]) -> str:
    """The paths of a datum's inputs. Files of one directory stand for that directory, and files that differ in their
    endings alone, as a model's do, are one."""
    homes = [f"{path.rstrip('/').rpartition('/')[0]}/" for path in paths]
    by_name: dict[str, list[str]] = {}
    for path, home in zip(paths, homes, strict=True):
        if home != "/" and homes.count(home) > 1:
            by_name[home] = [home]
            continue
        name, _, ending = path.rpartition(".")
        by_name.setdefault(path if "/" in ending else name, []).append(path)
    return ", ".join(each[0] if len(each) == 1 else f"{name}.*" for name, each in by_name.items())


def rejected_files(count: int) -> str:
    """The number of rejected files in words, as far as they were counted."""
    return f"{files(count)}{' or more' if count >= MOST_COUNTED else ''} rejected"


def show_rejections(rejected: Sequence[RejectedFile]) -> None:
    """Prints rejected files with their reasons, if there are any, and counts those that are not pictures."""
    skipped = [each.source for each in rejected if each.is_skipped]
    if skipped:
        say(f"skipped {words_of_skipped(skipped)}")
    rejected = [each for each in rejected if not each.is_skipped]
    if not rejected:
        return
    say(f"{rejected_files(len(rejected))}:")
    for each in rejected[:_MOST_REJECTIONS]:
        say(f"  {each.repo}: {each.source}: {each.reason}")
    if len(rejected) > _MOST_REJECTIONS:
        say(f"  and {len(rejected) - _MOST_REJECTIONS} more: `lookalike status --json` lists all")
