"""Pickers, by which requests since 2.10 name objects; a commit may be picked by its position in a history."""

import sqlite3

from localpachd.api.schema.schema import pfs_pb2, pps_pb2
from localpachd.errors import PachError
from localpachd.pfs import commits
from localpachd.pfs.pfs_entities import USER, Branch, Commit, CommitInfo, Repo
from localpachd.pps.pps_entities import Pipeline
from speclang.names import DEFAULT_PROJECT


def project(picker: pfs_pb2.ProjectPicker) -> str:
    """The name of the picked project; `default` if the picker is empty."""
    return picker.name or DEFAULT_PROJECT


def repo(picker: pfs_pb2.RepoPicker) -> Repo:
    if not picker.HasField("name"):
        raise PachError("repo picker cannot be nil")
    return Repo(project(picker.name.project), picker.name.name, picker.name.type or USER)


def branch(picker: pfs_pb2.BranchPicker) -> Branch:
    if not picker.HasField("name"):
        raise PachError("branch picker cannot be nil")
    return Branch(repo(picker.name.repo), picker.name.name)


def pipeline(picker: pps_pb2.PipelinePicker) -> Pipeline:
    if not picker.HasField("name"):
        raise PachError("pipeline picker cannot be nil")
    return Pipeline(project(picker.name.project), picker.name.name)


def commit(conn: sqlite3.Connection, picker: pfs_pb2.CommitPicker) -> CommitInfo:
    """The picked commit: the head of a branch, a member of a commit set, or an offset from either or from the root of a
    branch."""
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
