"""The `metadata.API` service: user metadata of objects by key. The pfs and pps rooms know the objects."""

import sqlite3
from collections.abc import Callable

from localpachd.api.messages import pickers
from localpachd.api.schema.schema import metadata_pb2
from localpachd.errors import FailedPrecondition, PachError, prefixed
from localpachd.pfs import lookup, metadata, projects
from localpachd.pfs.metadata import MetadataEdit, ObjectKey, ObjectKind
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pps import pipelines


class MetadataServicer:
    """`metadata.API`."""

    def __init__(self, pfs: PfsService) -> None:
        self._pfs = pfs

    def EditMetadata(self, request: metadata_pb2.EditMetadataRequest) -> None:
        def step(txn: Transaction) -> None:
            wrong = []
            for number, each in enumerate(request.edits):
                try:
                    _edit(txn, each)
                except PachError as error:
                    wrong.append(f"edit #{number}: {error}")
            if wrong:
                kind = FailedPrecondition if any("already exists" in each for each in wrong) else PachError
                raise kind("apply edits: " + "; ".join(wrong))

        self._pfs.transact(step)


def _edit(txn: Transaction, message: metadata_pb2.Edit) -> None:
    kind: ObjectKind
    for kind in _TARGETS:
        if message.HasField(kind):
            with prefixed(f"pick {kind}", plain=True):
                key, name = _TARGETS[kind](txn.conn, message)
            try:
                metadata.edit(txn, kind, key, _change(message))
            except PachError as error:
                what = f'{kind} "{name}"' if name else f"{kind} metadata"
                raise PachError(f"edit {what}: {error}") from error
            return
    raise PachError("unknown target: pick a project, commit, branch, repo, pipeline or the cluster")


def _change(message: metadata_pb2.Edit) -> MetadataEdit:
    if message.HasField("replace"):
        return MetadataEdit("replace", whole=dict(message.replace.replacement))
    if message.HasField("add_key"):
        return MetadataEdit("add", message.add_key.key, message.add_key.value)
    if message.HasField("edit_key"):
        return MetadataEdit("edit", message.edit_key.key, message.edit_key.value)
    if message.HasField("delete_key"):
        return MetadataEdit("delete", message.delete_key.key)
    raise PachError("no operation: add, edit or delete a key, or replace all keys")


def _project(conn: sqlite3.Connection, edit: metadata_pb2.Edit) -> tuple[ObjectKey, str]:
    name = projects.inspect(conn, pickers.project(edit.project)).name
    return name, name


def _repo(conn: sqlite3.Connection, edit: metadata_pb2.Edit) -> tuple[ObjectKey, str]:
    repo = pickers.repo(edit.repo)
    return lookup.repo_id(conn, repo), str(repo)


def _branch(conn: sqlite3.Connection, edit: metadata_pb2.Edit) -> tuple[ObjectKey, str]:
    branch = pickers.branch(edit.branch)
    return lookup.branch_row(conn, branch)["id"], str(branch)


def _commit(conn: sqlite3.Connection, edit: metadata_pb2.Edit) -> tuple[ObjectKey, str]:
    info = pickers.commit(conn, edit.commit)
    return info.seq, str(info.commit)


def _pipeline(conn: sqlite3.Connection, edit: metadata_pb2.Edit) -> tuple[ObjectKey, str]:
    name = str(pipelines.inspect(conn, pickers.pipeline(edit.pipeline)).pipeline)
    return name, name


_TARGETS: dict[ObjectKind, Callable[[sqlite3.Connection, metadata_pb2.Edit], tuple[ObjectKey, str]]] = {
    "cluster": lambda conn, edit: ("", ""),
    "project": _project,
    "repo": _repo,
    "branch": _branch,
    "commit": _commit,
    "pipeline": _pipeline,
}
"""For each field that can pick an object, the key and the name of that object."""
