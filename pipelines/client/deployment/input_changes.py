"""Pipelines whose inputs a deployment moves to other branches, or crosses with a schedule.

Two branches of one repo must not meet in one graph, which Pachyderm checks after each update. And a cross with a
schedule has no datum before its first tick, which Pachyderm leaves to the clock. So such pipelines are stopped while
they are updated: their jobs begin when all of it is in place.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from pipelines.client import branches
from pipelines.client.deployment import train_branch
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.specifications.pipeline_specs import leaves


@contextmanager
def stopped_for_update(connection: Connection, inputs: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[None]:
    """Surrounds the deployment of pipelines. `inputs`: what each is to read, as an Input, by its name. `there`: the
    deployed pipelines by name, with details.

    At the start it stops the running pipelines that change in this way, and makes the branches `train` that are to be
    read, at the newest commits. At the end it gives each new schedule in a cross its first tick, and starts these
    pipelines again.
    """
    changing = [
        name
        for name, tree in inputs.items()
        if name in there and not there[name].stopped and _changes(there[name].details.input, tree)
    ]
    _make_branches(connection, inputs)
    for name in reversed(changing):
        connection.change(partial(connection.client.stop_pipeline, name, project_name=connection.project))
    try:
        yield
        for name in (name for name in inputs if name not in there or name in changing):
            if not all(_ticked(connection, name, each) for each in _schedules(inputs[name])):
                connection.client.run_cron(name, project_name=connection.project)
    finally:
        for name in changing:
            connection.change(partial(connection.client.start_pipeline, name, project_name=connection.project))


def _make_branches(connection: Connection, inputs: Mapping[str, Any]) -> None:
    wanted = train_branch.read_by(inputs.values())
    missing = [repo for repo in wanted if not branches.head(connection, repo, train_branch.BRANCH)]
    commits = train_branch.newest(connection, missing) if missing else {}
    if commits:
        train_branch.move(connection, commits)


def _changes(before: Any, after: Any) -> bool:
    """Whether an input is to read another branch of a repo, or has another number of schedules."""
    old, new = _branches(before), _branches(after)
    moved = any(old[repo] != branch for repo, branch in new.items() if repo in old)
    return moved or len([*_schedules(before)]) != len([*_schedules(after)])


def _branches(tree: Any) -> dict[str, str]:
    """The branch that is read of each repo."""
    return {leaf.repo: leaf.branch or "master" for leaf in leaves(tree)}


def _schedules(tree: Any) -> Iterator[Any]:
    """The schedules in crosses."""
    for member in tree.cross:
        if member.HasField("cron"):
            yield member.cron
    for member in (*tree.cross, *tree.union, *tree.join, *tree.group):
        yield from _schedules(member)


def _ticked(connection: Connection, pipeline: str, schedule: Any) -> bool:
    return Repository(connection, schedule.repo or f"{pipeline}_{schedule.name}").exists("/")
