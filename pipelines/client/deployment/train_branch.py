"""The branch `train`: what pipelines read in place of master where they compute on request, or by a trigger.

The branches of that name belong together: they are moved at once, to commits of one commit set, so that no job sees a
state in between. Knows no pipeline by name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.client import branches
from pipelines.client.commit_sets import inspect_commit
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.transactions import transaction
from pipelines.specifications.pipeline_specs import leaves

BRANCH = "train"


def repos(connection: Connection) -> list[str]:
    """The repos whose branch of that name deployed pipelines read, sorted; none where all is computed at once."""
    return read_by(info.details.input for info in connection.retry(ProjectJobs(connection).pipelines).values())


def read_by(inputs: Any) -> list[str]:
    """The repos whose branch of that name these inputs read, sorted."""
    return sorted({leaf.repo for each in inputs for leaf in leaves(each) if leaf.branch == BRANCH})


def head(connection: Connection, repo: str) -> str:
    """The id of the commit that the branch is at, "" before it was moved for the first time."""
    found = connection.retry(branches.head, connection, repo, BRANCH)
    return found if found and connection.retry(Repository(connection, repo, found).exists, "/") else ""


def newest(connection: Connection, among: Sequence[str]) -> dict[str, str]:
    """The commits by repo to which the branches of these repos would be moved: the newest good one of a pipeline's
    output, and those of the others that it was computed from. Those that have none are left out."""
    there = connection.retry(ProjectJobs(connection).pipelines)
    lead = next((repo for repo in among if repo in there), "")
    good = connection.retry(Repository(connection, lead).good) if lead else None
    found = {} if good is None else {lead: good.at}
    for repo in among:
        if repo == lead:
            continue
        if good is not None:
            info = connection.retry(inspect_commit, connection, repo, good.at)
            found |= {} if info is None else {repo: info.commit.id}
        if repo not in found:
            own = connection.retry(Repository(connection, repo).good)
            found |= {} if own is None else {repo: own.at}
    return found


def move(connection: Connection, commits: Mapping[str, str]) -> str:
    """Moves the branches of repos to these commits, all at once; returns the id of the commit set with the jobs of
    that."""
    with transaction(connection) as begun:
        for repo, commit in commits.items():
            branches.move(connection, repo, BRANCH, commit, begun)
    return begun.id
