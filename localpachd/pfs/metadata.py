"""Metadata: the strings by key that clients of Pachyderm 2.10 and later can edit. Knows each object only by its kind
and key."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from localpachd.errors import PachError
from localpachd.pfs.transaction import Transaction

ObjectKind = Literal["cluster", "project", "repo", "branch", "commit", "pipeline"]
ObjectKey = int | str
"""The row id of a repo, branch or commit; the name of a project or `project/name` of a pipeline; "" for the cluster."""


@dataclass(frozen=True, slots=True)
class MetadataEdit:
    """One change: `add` refuses an existing key, `replace` replaces all metadata by `whole`."""

    operation: Literal["add", "edit", "delete", "replace"]
    key: str = ""
    value: str = ""
    whole: Mapping[str, str] = field(default_factory=dict)


def read_metadata(conn: sqlite3.Connection, kind: ObjectKind, key: ObjectKey) -> dict[str, str]:
    """The metadata of an object; {} if it has none."""
    row = conn.execute("SELECT content FROM metadata WHERE kind = ? AND subject = ?", (kind, key)).fetchone()
    return decoded(row["content"] if row else None)


def column(kind: ObjectKind, key: str) -> str:
    """The SQL of a column for `decoded`: the metadata of the object whose key is the SQL expression `key`."""
    return f"(SELECT content FROM metadata WHERE kind = '{kind}' AND subject = {key})"


def decoded(content: str | None) -> dict[str, str]:
    """The metadata stored as this text; {} for None."""
    found: dict[str, str] = json.loads(content) if content else {}
    return found


def edit(txn: Transaction, kind: ObjectKind, key: ObjectKey, change: MetadataEdit) -> None:
    """Changes the metadata of an existing object."""
    changed = json.dumps(apply_edit(read_metadata(txn.conn, kind, key), change), sort_keys=True)
    txn.conn.execute("INSERT OR REPLACE INTO metadata VALUES (?, ?, ?)", (kind, key, changed))


def apply_edit(found: Mapping[str, str], change: MetadataEdit) -> dict[str, str]:
    """The metadata after a change. Raises PachError if the change is not possible."""
    if change.operation == "replace":
        if "" in change.whole:
            raise PachError("metadata keys cannot be empty")
        return dict(change.whole)
    if not change.key:
        raise PachError("metadata keys cannot be empty")
    if change.operation == "delete":
        return {key: value for key, value in found.items() if key != change.key}
    if change.operation == "add" and change.key in found:
        raise PachError(f'add_key target key "{change.key}" already exists; use edit_key instead')
    return {**found, change.key: change.value}
