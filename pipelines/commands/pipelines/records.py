"""The commands for the records that a server keeps: commits, jobs with their datums, and logs."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import Annotated

import typer
from rich.markup import escape

from pipelines.client import repository
from pipelines.client.commit_history import CommitHistory, CommitRecord
from pipelines.client.jobs.datum_rerun import job_of
from pipelines.client.jobs.datums import JobDatums
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.jobs.logs import LogFilter, LogLine, PipelineLogs
from pipelines.client.server.connection import Connection
from pipelines.client.server.parallel_reads import parallel_reads
from pipelines.commands.kit import interrupts
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.options import AddressOption, JsonOption, LimitOption, PipelineArgument
from pipelines.commands.kit.terminal import coloured, console, local_time, say, say_all, say_json
from pipelines.errors import LookalikeError
from pipelines.specifications.pipeline_specs import SOURCES
from stages.datum.text_format import counted, first_of, visible

app = App()

_MOST_NAMED = 4


@app.command(examples=("lookalike commits", "lookalike commits images --limit 5", "lookalike commits render --json"))
def commits(
    repo: Annotated[
        str, typer.Argument(metavar="REPO", help="A repo [default: images, queries and the others that you write to].")
    ] = "",
    limit: LimitOption = 20,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Show the last commits, the newest first.

    An id names one change and everything computed from it: `lookalike results --at ID` writes the sheets of that time.
    """
    connection = open_connection(address)
    history = CommitHistory(connection)
    found = sorted(_changes(history, [repo] if repo else SOURCES, limit), key=lambda each: each.started, reverse=True)[
        :limit
    ]
    if repo and not found:
        _must_exist(connection, repo)
    if as_json:
        say_json(found)
    elif found:
        _show_commits(found)
    else:
        say("no commits yet: add pictures with `lookalike add`")


@app.command(
    examples=(
        "lookalike jobs",
        "lookalike jobs features --limit 3",
        "lookalike jobs features@4f1d2c0a9b8e47d6a5f3c2b1e0d9f8a7",
    )
)
def jobs(
    pipeline: Annotated[
        str,
        typer.Argument(metavar="PIPELINE[@JOB]", help="A pipeline [default: all], or with the id of a job its datums."),
    ] = "",
    limit: LimitOption = 20,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Show the last jobs, the newest first: one group for each change, with the change's id.

    A datum is the smallest piece of a job's work, such as one picture or a block of them.
    """
    connection = open_connection(address)
    name, _, job = pipeline.partition("@")
    if job:
        _show_datums(connection, name, job, limit, as_json)
        return
    there = ProjectJobs(connection)
    with parallel_reads() as reads:
        of_each = reads.map(lambda of: there.last(of, limit), _chosen(there, name))
    found = sorted(chain.from_iterable(of_each), key=_created, reverse=True)[:limit]
    if as_json:
        say_json(found)
    elif found:
        _show_jobs(found, {each.id: each for each in _changes(CommitHistory(connection), SOURCES, limit)})
    else:
        say("no jobs yet: add pictures with `lookalike add`")


@app.command(
    examples=(
        "lookalike logs",
        "lookalike logs features --follow",
        "lookalike logs preprocess --datum /cat.jpg",
        "lookalike logs --job 4f1d2c0a9b8e47d6a5f3c2b1e0d9f8a7 --all",
    )
)
def logs(
    pipeline: PipelineArgument = "",
    job: Annotated[str, typer.Option(metavar="ID", help="Only lines of this job.")] = "",
    datum: Annotated[
        str, typer.Option(metavar="ID|PATH", help="Only lines of this datum: its id, or the path of an input.")
    ] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more lines, until Ctrl-C.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="The lines of the workers, too, not only of user code.")
    ] = False,
    limit: LimitOption = 100,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Show the last lines of the logs of a job, or of the last day. JSON is one object a line."""
    connection = open_connection(address)
    there = ProjectJobs(connection)
    if follow and not pipeline:
        raise typer.BadParameter("name the pipeline to follow", param_hint="'--follow'")
    names = _chosen(there, pipeline)
    if job:
        names = [each.pipeline for each in there.of_set(job) if each.pipeline in names]
        if not names:
            raise LookalikeError(f"{pipeline or 'the server'} has no job {job}: `lookalike jobs {pipeline}` lists them")
    choice = LogFilter(names, job, datum, user_only=not everything)
    if follow:
        for line in PipelineLogs(connection).follow(choice):
            interrupts.check()
            _show_line(line, as_json)
        return
    found, unreadable = PipelineLogs(connection).last(choice, limit)
    for line in found:
        _show_line(line, as_json)
    _say_unreadable(unreadable, found)
    if not found and not unreadable:
        say("no lines" if everything else "no lines of user code: --all shows the workers' lines, too")


def _changes(history: CommitHistory, repos: Iterable[str], limit: int) -> list[CommitRecord]:
    """The last commits of each of these repos."""
    with parallel_reads() as reads:
        return list(chain.from_iterable(reads.map(lambda repo: history.last(repo, limit), repos)))


def _show_datums(connection: Connection, pipeline: str, job: str, limit: int, as_json: bool) -> None:
    found = list(JobDatums(connection, job_of(ProjectJobs(connection), pipeline, job)))
    found.sort(key=lambda each: each.state != "failed")
    if as_json:
        say_json(found[:limit])
        return
    _head(f"{'datum':<{_SHORT}}  {'state':<9}  {'seconds':>8}  inputs")
    for each in found[:limit]:
        seconds = "" if each.seconds is None else f"{each.seconds:,.1f}"
        _row(f"{each.id[:_SHORT]}  ", each.state, 9, f"  {seconds:>8}  {', '.join(each.paths)}")
    if len(found) > limit:
        say(f"and {counted(len(found) - limit, 'datum', 'datums')} more: --limit {len(found)} shows all")


_SHORT = 12
"""Digits of a datum's id: enough for `lookalike debug datum` and `lookalike logs --datum`."""


def _show_commits(found: Sequence[CommitRecord]) -> None:
    width = max(4, *(len(each.repo) for each in found))
    _head(f"{'commit':<32}  {'started':<16}  {'repo':<{width}}  change")
    for each in found:
        start = f"{each.id}  {local_time(each.started)}  {each.repo:<{width}}  "
        if each.error:
            _row(start, "failure", 0, f": {each.error}")
        elif each.open:
            _row(start, "open", 0, f" {each.description}")
        else:
            say(f"{start}{each.description or (each.author and f'by {each.author}')}".rstrip())


def _show_jobs(found: Sequence[Job], changes: Mapping[str, CommitRecord]) -> None:
    """Prints the jobs of each change below its id."""
    width = max(len(each.pipeline) for each in found)
    _head(f"{'pipeline':<{width + 2}}  {'job':<10}  processed  skipped  failed   seconds")
    for id_, of_it in groupby(found, key=lambda each: each.id):
        group = list(of_it)
        words = changes[id_].description if id_ in changes else ""
        at = local_time(created) if (created := group[-1].created) else ""
        say(f"{id_}  {at}  {words}".rstrip())
        for each in group:
            numbers = f"  {each.processed:>9,}  {each.skipped:>7,}  {each.failed:>6,}  {each.seconds or 0.0:>8,.1f}"
            _row(f"  {each.pipeline:<{width}}  ", each.state, 10, numbers)


def _head(text: str) -> None:
    console.print(text, style="bold", markup=False, highlight=False, soft_wrap=True)


def _row(start: str, state: str, width: int, rest: str) -> None:
    """Prints a line with a state in its colour, which is never wrapped or cut: programs read it, too."""
    padding = " " * (width - len(state))
    line = escape(visible(start)) + coloured(state) + padding + escape(visible(rest)).rstrip()
    console.print(line, highlight=False, emoji=False, soft_wrap=True)


def _created(job: Job) -> tuple[float, str]:
    return job.created.timestamp() if job.created else 0.0, job.id


def _show_line(line: LogLine, as_json: bool) -> None:
    if as_json:
        say_json(line, indent=None)
        return
    style = None if line.user else "dim"
    text = visible(f"{line.time.astimezone():%H:%M:%S} {line.pipeline}: {line.message}")
    console.print(text, style=style, markup=False, emoji=False, highlight=False, soft_wrap=True)


def _say_unreadable(unreadable: Mapping[str, str], found: Sequence[LogLine]) -> None:
    """Names the pipelines without a readable log, those of one reason together."""
    names: dict[str, list[str]] = {}
    for name, reason in unreadable.items():
        names.setdefault(reason, []).append(name)
    said = [f"the log of {first_of(of, _MOST_NAMED)} cannot be read: {reason}" for reason, of in names.items()]
    if said and not found:
        raise LookalikeError("; ".join(said))
    say_all(said)


def _must_exist(connection: Connection, repo: str) -> None:
    repos = repository.sizes(connection)
    if repo not in repos:
        raise LookalikeError(f"there is no repo {repo}: there are {', '.join(sorted(repos)) or 'none'}")


def _chosen(there: ProjectJobs, pipeline: str) -> list[str]:
    """The pipeline of that name, or all of them for "". Raises LookalikeError for an unknown one."""
    known = list(there.pipelines())
    if not pipeline:
        return known
    if pipeline not in known:
        others = f"there are {', '.join(sorted(known))}" if known else "run `lookalike deploy`"
        raise LookalikeError(f"there is no pipeline {pipeline}: {others}")
    return [pipeline]
