"""The ways in which requests since 2.10 name things: pickers, which may name one by its place in a history."""

import sqlite3
from typing import Any

from localpachd.errors import PachError
from localpachd.pfs import commits
from localpachd.pfs.entities import DEFAULT_PROJECT, USER, Branch, Commit, CommitInfo, Repo
from localpachd.pps.entities import Pipeline


def project(picker: Any) -> str:
    """The name of the project that is picked; `default` if none is named."""
    name: str = picker.name
    return name or DEFAULT_PROJECT


def repo(picker: Any) -> Repo:
    """The repo that is picked."""
    if not picker.HasField("name"):
        raise PachError("repo picker cannot be nil")
    return Repo(project(picker.name.project), picker.name.name, picker.name.type or USER)


def branch(picker: Any) -> Branch:
    """The branch that is picked."""
    if not picker.HasField("name"):
        raise PachError("branch picker cannot be nil")
    return Branch(repo(picker.name.repo), picker.name.name)


def pipeline(picker: Any) -> Pipeline:
    """The pipeline that is picked."""
    if not picker.HasField("name"):
        raise PachError("pipeline picker cannot be nil")
    return Pipeline(project(picker.name.project), picker.name.name)


def commit(conn: sqlite3.Connection, picker: Any) -> CommitInfo:
    """The commit that is picked: a branch's head, one of a commit set, or one so far from such or from the root."""
    if picker.HasField("branch_head"):
        head = branch(picker.branch_head)
        return commits.resolve(conn, Commit(head.repo, branch=head.name))
    if picker.HasField("id"):
        return commits.resolve(conn, Commit(repo(picker.id.repo), picker.id.id))
    if picker.HasField("branch_root"):
        of = branch(picker.branch_root.branch)
        return commits.resolve(conn, Commit(of.repo, f"{of.name}.{picker.branch_root.offset + 1}"))
    if picker.HasField("ancestor"):
        start = commit(conn, picker.ancestor.start)
        return commits.resolve(conn, Commit(start.commit.repo, f"{start.commit.id}^{picker.ancestor.offset}"))
    raise PachError("commit picker cannot be nil")
