"""Opt-in pipelines for the commands that need them: deployed on first use, waited for, and deleted on request."""

from pipelines.client.connection import Connection
from pipelines.client.jobs import Jobs
from pipelines.commands import interrupts, progress, waiting
from pipelines.commands.terminal import say, say_all
from pipelines.explaining import deploying
from pipelines.specifications import optional, own


def ready(connection: Connection, group: str, wait: bool = True) -> bool:
    """Has a group's pipelines deployed, and waits for their jobs unless told otherwise; returns whether the output is
    that of the newest commits. Says what it does. Raises LookalikeError if they cannot be deployed or a job fails."""
    if not deploying.deployed(connection, group):
        say(f"deploying the pipelines that this needs; `lookalike {group} --off` deletes them again")
        deploying.deploy(connection, group, lambda each: say(f"{each.kind} {each.name}: {each.action}"))
    names = [spec.name for spec in optional.needed(own.current(), group)]
    unfinished = {job.id for name in names for job in Jobs(connection).queue(name)}
    if not unfinished:
        newest = (Jobs(connection).newest(name) for name in names)
        waiting.finish(connection, [job for job in newest if job is not None and job.state != "success"])
        return True
    if not wait:
        say("their jobs are running: see `lookalike status`")
        return False
    try:
        jobs = progress.wait(connection, sorted(unfinished))
    except KeyboardInterrupt:
        interrupts.explain("no longer waiting; the jobs continue: see `lookalike status`")
        raise
    waiting.finish(connection, jobs)
    return True


def off(connection: Connection, group: str) -> None:
    """Deletes a group's pipelines, and says so."""
    done = deploying.remove(connection, group)
    say_all(f"{each.kind} {each.name}: {each.action}" for each in done)
    if not done:
        say("none of these pipelines is deployed: nothing to do")
