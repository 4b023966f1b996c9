"""The end of commands that start jobs: waiting for the jobs, the table of results, an error if one did not succeed."""

from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass

from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.cluster import pipeline_status
from pipelines.cluster.pipeline_status import RejectedFile
from pipelines.commands.kit import display, interrupts, progress
from pipelines.commands.kit.terminal import console, is_brief, say, say_all
from pipelines.errors import LookalikeError


@dataclass(frozen=True, slots=True)
class UploadedNames:
    """The true names of the files or entries that a command has put into a repo."""

    repo: str
    names: AbstractSet[str]

    def holds(self, rejection: RejectedFile) -> bool:
        """Whether a rejected file is one of these, or is in one."""
        return rejection.repo == self.repo and rejection.is_in(self.names)


def conclude(connection: Connection, done: str, commit: str, wanted: bool, *put: UploadedNames) -> list[RejectedFile]:
    """Prints the outcome, waits for the jobs of its commit if that is wanted, and tells which of the files that were
    put are rejected; returns these."""
    return conclude_all(connection, {commit: done}, wanted, *put)


def conclude_all(
    connection: Connection, done: Mapping[str, str], wanted: bool, *put: UploadedNames
) -> list[RejectedFile]:
    """Prints the outcome of each commit unless it is "", waits for the jobs of all of them if that is wanted, and tells
    which of the files that were put are rejected; returns these."""
    try:
        say_all(what if is_brief() else f"{what}: commit {commit}" for commit, what in done.items() if what)
        jobs = progress.wait(connection, list(done)) if wanted else []
    except KeyboardInterrupt:
        interrupts.explain("no longer waiting, but the jobs continue: see `lookalike status`")
        raise
    if not wanted:
        say("its jobs are running: see `lookalike status`")
        return []
    rejected = finish(connection, jobs, *put)
    say_all(pipeline_status.notes(connection, all_empty=not is_brief()))
    return rejected


def finish(connection: Connection, jobs: Sequence[Job], *put: UploadedNames) -> list[RejectedFile]:
    """Prints the table of results, and the files among those put that are rejected, which it returns; raises
    LookalikeError if a job did not succeed."""
    rejected = [each for each in pipeline_status.rejections(connection) if any(one.holds(each) for one in put)]
    failed = [each for each in jobs if each.state != "success"]
    if failed or (jobs and not is_brief()):
        console.print(display.job_table(jobs, rejected))
    display.show_rejections(rejected)
    if failed:
        names = ", ".join(dict.fromkeys(each.pipeline for each in failed))
        raise LookalikeError(f"{names} did not succeed: {_reason(connection, failed)}")
    return rejected


def _reason(connection: Connection, failed: Sequence[Job]) -> str:
    """The reason, if jobs were stopped in favour of a newer commit, as a push or a deployment does; or its place."""
    for job in failed:
        newest = ProjectJobs(connection).newest(job.pipeline) if job.state == "killed" else None
        if newest is not None and newest.id != job.id:
            return (
                f"{job.reason or 'stopped'}; the newer commit {newest.id} supersedes this one: see `lookalike status`"
            )
    return "see `lookalike status` for the reasons"
