"""The end of commands that start jobs: waiting for the jobs, the table of results, an error if one did not succeed."""

from collections.abc import Mapping, Sequence

from pipelines.client.connection import Connection
from pipelines.client.jobs import Job
from pipelines.cluster import status
from pipelines.commands import display, progress
from pipelines.commands.terminal import console, files, say, say_all
from pipelines.errors import LookalikeError


def conclude(connection: Connection, done: str, commit: str, wanted: bool) -> None:
    """Prints the outcome, and waits for the jobs of its commit if that is wanted."""
    conclude_all(connection, {commit: done}, wanted)


def conclude_all(connection: Connection, done: Mapping[str, str], wanted: bool) -> None:
    """Prints the outcome of each commit, and waits for the jobs of all of them if that is wanted."""
    try:
        say_all(f"{what}: commit {commit}" for commit, what in done.items())
        jobs = progress.wait(connection, list(done)) if wanted else []
    except KeyboardInterrupt:
        say("no longer waiting; the jobs continue: see `lookalike status`")
        raise
    if not wanted:
        say("its jobs are running: see `lookalike status`")
        return
    finish(connection, jobs)
    say_all(status.notes(connection))


def finish(connection: Connection, jobs: Sequence[Job]) -> None:
    """Prints the table of results; raises LookalikeError if a job did not succeed."""
    rejected = status.rejections(connection)
    if jobs:
        console.print(display.job_table(jobs, rejected))
    if rejected:
        say(f"{files(len(rejected))} rejected: see `lookalike status`")
    failed = list(dict.fromkeys(each.pipeline for each in jobs if each.state != "success"))
    if failed:
        raise LookalikeError(f"{', '.join(failed)} did not succeed: see `lookalike status` for the reasons")
