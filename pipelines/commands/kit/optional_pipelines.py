"""Opt-in pipelines for the commands that need them: deployed on first use, waited for, and deleted on request."""

import os

from pipelines.analysis.measurement import optional_deployment
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.cluster import gpu_holders
from pipelines.commands.kit import interrupts, job_completion, progress
from pipelines.commands.kit.estimates import comparison_seconds
from pipelines.commands.kit.terminal import say, say_all
from pipelines.specifications import optional_specs, specs_directory
from stages.datum.text_format import counted, rounded_time

_MANY = 50_000
"""Pictures whose comparison is worth a word wherever it takes place."""

_LONG = 30.0
"""Seconds that are."""

_COMPARES = "neighbours"
"""The pipeline that compares all pictures."""


def ensure_deployed(connection: Connection, group: str, wait: bool = True) -> bool:
    """Has a group's pipelines deployed, and waits for their jobs unless told otherwise; returns whether the output is
    that of the newest commits. Says what it does. Raises LookalikeError if they cannot be deployed or a job fails."""
    if not optional_deployment.deployed(connection, group):
        optional_deployment.check(connection, group)
        say(f"deploying the pipelines that this needs: `{optional_specs.removal(group)}` deletes them again")
        if any(spec.name == _COMPARES for spec in optional_specs.required_specs(specs_directory.current(), group)):
            _say_expected(connection)
        optional_deployment.deploy(connection, group, lambda each: say(str(each)))
    names = [spec.name for spec in optional_specs.required_specs(specs_directory.current(), group)]
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


def _say_expected(connection: Connection) -> None:
    """Says what a large library costs: every picture is compared with every other one, once."""
    work = optional_deployment.expected(connection)
    leases = connection.retry(gpu_holders.local_leases, connection)
    cores = len(os.sched_getaffinity(0)) if leases is not None and not leases.total else None
    seconds = comparison_seconds(work.pictures, work.dimension, cores) if cores else 0.0
    if work.pictures < _MANY and seconds < _LONG:
        return
    pairs = f"{work.pictures:,} pictures are compared with each other once, as {work.segments**2} pairs of segments"
    takes = f": {rounded_time(seconds)} on {counted(cores, 'core', 'cores')}" if cores else ""
    say(f"{pairs}{takes}; a picture added later costs {2 * work.segments - 1} of these")


def off(connection: Connection, group: str, upstream: bool = True) -> None:
    """Deletes a group's pipelines, and says so. upstream: with those of other groups that only they read."""
    done = optional_deployment.remove(connection, group, upstream)
    say_all(map(str, done))
    if not done:
        say("none of these pipelines is deployed: nothing to do")
