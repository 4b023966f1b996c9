"""Opt-in pipelines for the commands that need them: deployed on first use, waited for, and deleted on request."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from pipelines.analysis.measurement import optional_deployment
from pipelines.analysis.measurement.optional_deployment import ANNOTATIONS, MAP
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.cluster import gpu_holders
from pipelines.commands.kit import interrupts, job_completion, progress
from pipelines.commands.kit.estimates import comparison_seconds, later_seconds
from pipelines.commands.kit.terminal import ask, say, say_all
from pipelines.specifications import optional_specs, specs_directory
from pipelines.upgrades import upgrade_costs
from pipelines.upgrades.upgrade_costs import PastJobs
from stages.datum.text_format import counted, enumerated, rounded_time

_MANY = 50_000
"""Pictures whose comparison is worth a word wherever it takes place."""

_LONG = 30.0
"""Seconds that are."""

_WITHOUT_ONCE = (ANNOTATIONS, MAP, "vectors")
"""Groups whose commands have no --once."""

_COMPARES = "neighbours"
"""The pipeline that compares all pictures."""


@contextmanager
def deployed(
    connection: Connection, group: str, wait: bool = True, once: bool = False, yes: bool = False
) -> Iterator[bool]:
    """Has a group's pipelines deployed in a `with` statement and after it, and waits for their jobs unless told
    otherwise. Gives whether the output is that of the newest commits. Says first what they will cost, and asks in a
    terminal unless `yes`. once: those that were missing are deleted again at the end, also of an interrupted command.

    Raises LookalikeError if they cannot be deployed or a job fails."""
    if once and not wait:
        raise typer.BadParameter("--once waits for the result: give it without --no-wait")
    before = set(connection.retry(ProjectJobs(connection).pipelines))
    missing = [name for name in _names(group) if name not in before]
    if missing:
        optional_deployment.check(connection, group)
        _say_costs(connection, group, missing, once)
        if not (yes or once) and sys.stdin.isatty():
            ask("deploy them?", "--yes deploys them", "nothing was deployed")
    elif once:
        say(f"they are deployed already, and stay: `{optional_specs.removal(group)}` deletes them")
    try:
        if missing:
            optional_deployment.deploy(connection, group, lambda each: say(str(each)))
        yield _wait(connection, group, wait)
    finally:
        if once and missing:
            interrupts.explain(f"interrupted: `{optional_specs.removal(group)}` deletes the pipelines of this")
            say_all(map(str, optional_deployment.remove(connection, group, kept=before)))
            interrupts.explain("interrupted, and the pipelines of this are deleted again")


def _names(group: str) -> list[str]:
    return [spec.name for spec in optional_specs.required_specs(specs_directory.current(), group)]


def _wait(connection: Connection, group: str, wait: bool) -> bool:
    """Waits for the jobs of a group's pipelines; returns whether their output is that of the newest commits."""
    names = _names(group)
    found = ProjectJobs(connection)
    waited: list[Job] = []
    while unfinished := {job.id for name in names for job in connection.retry(found.queue, name)}:
        if not wait:
            say("their jobs are running: see `lookalike status`")
            return False
        try:
            waited += progress.wait(connection, sorted(unfinished), names)
        except KeyboardInterrupt:
            interrupts.explain("no longer waiting, but the jobs continue: see `lookalike status`")
            raise
    newest = {name: connection.retry(found.newest, name) for name in names}
    if not waited:
        waited = [job for job in newest.values() if job is not None and job.state != "success"]
    for name in {job.pipeline for job in waited if job.stopped} - newest.keys():
        newest[name] = connection.retry(found.newest, name)
    # Of jobs that a deployment has stopped, newer ones have taken the place.
    ids = {name: job.id for name, job in newest.items() if job is not None}
    job_completion.finish(connection, [job for job in waited if not job.stopped or ids.get(job.pipeline) == job.id])
    return True


def _say_costs(connection: Connection, group: str, missing: Sequence[str], once: bool) -> None:
    """Says what the pipelines will cost: now in a large library, where every picture is compared with every other one,
    and, unless they are deleted again, each time that pictures are added."""
    work = optional_deployment.expected(connection)
    leases = connection.retry(gpu_holders.local_leases, connection)
    cores = len(os.sched_getaffinity(0)) if leases is not None and not leases.total else None
    seconds = comparison_seconds(work.pictures, cores) if cores else 0.0
    if _COMPARES in missing and (work.pictures >= _MANY or seconds >= _LONG):
        pairs = f"{work.pictures:,} pictures are compared with each other once, as {work.parts**2} pairs of parts"
        say(f"{pairs}: {rounded_time(seconds)} on {counted(cores, 'core', 'cores')}" if cores else pairs)
    if once:
        say(f"deploying the pipelines that this needs, and deleting them again at the end: {', '.join(missing)}")
        return
    past = connection.retry(upgrade_costs.past_jobs, connection, "index") if work.pictures else PastJobs(None)
    datum = past.seconds / past.computed if past.computed else 0.0
    later = later_seconds(work, len(missing), _COMPARES in missing, datum, seconds)
    longer = f"take {rounded_time(later)} longer" if work.pictures else "take longer"
    compared = f" ({2 * work.parts - 1} of {work.parts**2} pairs of parts of the library are compared again)"
    say(
        f"{enumerated(missing)} will follow every change, so each later `lookalike add` will {longer}"
        f"{compared if _COMPARES in missing and work.pictures else ''}; `{optional_specs.removal(group)}` deletes them "
        f"again{'' if group in _WITHOUT_ONCE else ', and --once computes this once and keeps none of them'}"
    )
    if ANNOTATIONS in missing and work.segments:
        say(f"index reads its {counted(work.segments, 'segment', 'segments')} once more now, and no vector or pixel")


def off(connection: Connection, group: str, upstream: bool = True) -> bool:
    """Deletes a group's pipelines, and says so; returns whether one was there. upstream: with those of other groups
    that only they read."""
    done = optional_deployment.remove(connection, group, upstream)
    say_all(map(str, done))
    if not done:
        say(f"{enumerated(_names(group))}: not deployed, so there is nothing to do")
    return bool(done)
