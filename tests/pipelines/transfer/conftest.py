"""Fixtures of the tests of moving: a library with a history, and a project to import it into."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.transfer.libraries import put, shouting
from tests.servers import Unique


@pytest.fixture
def other(connection: Connection, unique: Unique) -> Iterator[Connection]:
    """Another project, in place of another server."""
    project = unique("other")
    connection.client.create_project(project)
    there = replace(connection, project=project)
    yield there
    connection.client.delete_pipeline("shout", force=True, project_name=project)
    for repo in list(connection.client.list_repo()):
        if repo.repo.project.name == project:
            connection.client.delete_repo(repo.repo.name, force=True, project_name=project)
    connection.client.delete_project(project)


@pytest.fixture
def history(connection: Connection) -> Connection:
    """A library with a history: pictures added, changed and removed, and a query."""
    for repo in ("images", "queries", "models"):
        connection.client.create_repo(repo, project_name=connection.project)
    put(connection, "images", a="one", b="two", c="")
    put(connection, "queries", q="two")
    connection.client.create_repo("labels", project_name=connection.project)
    put(connection, "labels", l="a,cat")
    put(connection, "images", b="three", a=None)
    put(connection, "images", d="one")
    return connection


@pytest.fixture
def library(history: Connection, wait_for_jobs: WaitForJobs) -> Connection:
    """The same, with a pipeline."""
    shouting(history)
    job = ProjectJobs(history).newest("shout")
    assert job is not None
    wait_for_jobs(job.id)
    return history
