"""References on the wire: projects, repos, branches, commits, pipelines and jobs, both ways. Looks nothing up.

Every message comes out complete: pachctl follows `commit.branch.repo.project` and the like without looking.
"""

from typing import Any

from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from localpachd.errors import InvalidArgument
from localpachd.pfs.values import DEFAULT_PROJECT, USER, Branch, Commit, Repo
from localpachd.pps.values import Job, Pipeline


def project_name(message: Any) -> str:
    """The name in a Project message; an empty or unset one is the default project."""
    return str(message.name) or DEFAULT_PROJECT


def repo(message: Any) -> Repo:
    """Reads a Repo message."""
    return Repo(project_name(message.project), message.name, message.type or USER)


def branch(message: Any) -> Branch:
    """Reads a Branch message."""
    return Branch(repo(message.repo), message.name)


def commit(message: Any) -> Commit:
    """Reads a Commit message. Clients name the repo in it, in its branch, or in both."""
    named = message.repo if message.repo.name else message.branch.repo
    return Commit(repo(named), message.id, message.branch.name)


def pipeline(message: Any) -> Pipeline:
    """Reads a Pipeline message."""
    return Pipeline(project_name(message.project), message.name)


def job(message: Any) -> Job:
    """Reads a Job message."""
    if not message.id or not message.pipeline.name:
        raise InvalidArgument("must specify a job: its pipeline and its id")
    return Job(pipeline(message.pipeline), message.id)


def project_message(name: str) -> Any:
    """A Project message."""
    return pfs_pb2.Project(name=name)


def repo_message(value: Repo) -> Any:
    """A Repo message."""
    return pfs_pb2.Repo(project=project_message(value.project), name=value.name, type=value.type)


def branch_message(value: Branch) -> Any:
    """A Branch message."""
    return pfs_pb2.Branch(repo=repo_message(value.repo), name=value.name)


def commit_message(value: Commit) -> Any:
    """A Commit message, with its repo both in it and in its branch."""
    return pfs_pb2.Commit(
        repo=repo_message(value.repo),
        id=value.id,
        branch=branch_message(Branch(value.repo, value.branch)),
    )


def pipeline_message(value: Pipeline) -> Any:
    """A Pipeline message."""
    return pps_pb2.Pipeline(project=project_message(value.project), name=value.name)


def job_message(value: Job) -> Any:
    """A Job message."""
    return pps_pb2.Job(pipeline=pipeline_message(value.pipeline), id=value.id)
