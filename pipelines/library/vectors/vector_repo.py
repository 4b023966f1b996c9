"""The repo `vectors` as commands read and write it, by sixteenths: the first digits of ids.

A batch is called by its content and never changes: one that loses pictures is written anew. So what is there follows
from the pictures and their vectors, and not from the order in which they came.
"""

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.client.commit_writer import CommitWriter, MovedHeadError
from pipelines.client.deployment import deployment
from pipelines.client.repository import DeleteFile, FileEdit, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from stages.datum.contract import StageError
from stages.files import vector_files
from stages.files.tables.columns import ArrowColumn, SourceColumn
from stages.files.tables.index_table import TABLE
from stages.files.tables.parquet import read_columns
from stages.files.tables.vector_table import DIRECTORY, REPO, SUFFIX, VectorTable
from stages.knn.backend import Vectors

_ROWS = 4096
"""Vectors that are written at once."""


@dataclass(frozen=True)
class VectorRepo:
    """The tables at a commit, "" for none, by the paths of their files without the suffix."""

    commit: str
    tables: Mapping[str, VectorTable]

    @property
    def model(self) -> VectorTable | None:
        """A table, whose model and dimension are those of all; None without vectors."""
        return next(iter(self.tables.values()), None)

    def ids(self) -> Iterator[str]:
        """The pictures that have a vector."""
        for each in self.tables.values():
            yield from ArrowColumn.of(each.ids, pa.string()).stored.to_pylist()


@dataclass(frozen=True)
class VectorBatch:
    """New vectors of n pictures of a sixteenth, by ascending id. rows: of the pictures in `vectors`, float32 (m, d)."""

    table: VectorTable
    vectors: Vectors
    rows: Sequence[int]

    def pieces(self) -> Iterator[bytes]:
        """The file of the vectors."""
        yield vector_files.header(len(self.table), self.table.dimension)
        for start in range(0, len(self.rows), _ROWS):
            yield np.ascontiguousarray(self.vectors[self.rows[start : start + _ROWS]], "<f4").tobytes()

    def edits(self, scratch: Path) -> list[FileEdit]:
        """Those that put it."""
        table = scratch / "batch.parquet"
        self.table.write(table)
        content = table.read_bytes()
        digest = hashlib.sha256(content)
        for piece in self.pieces():
            digest.update(piece)
        path = f"/{DIRECTORY}/{self.table.ids[0][0]}/{digest.hexdigest()[:16]}"
        return [PutFile(f"{path}{SUFFIX}", content), PutFile(f"{path}{vector_files.SUFFIX}", self.pieces())]


def read(connection: Connection) -> VectorRepo:
    """What the newest commit has; nothing without the repo. Raises LookalikeError for a file that no command wrote."""
    if not connection.retry(Repository(connection, REPO).exists, "/"):
        return VectorRepo("", {})
    commit = CommitWriter(connection, REPO).newest()
    held = Repository(connection, REPO, commit)
    try:
        tables = {
            path.removesuffix(SUFFIX): VectorTable.read(io.BytesIO(content))
            for path, content in sorted(held.read_all(f"/{DIRECTORY}/*/*{SUFFIX}"))
        }
    except StageError as error:
        raise LookalikeError(f"a file of {REPO}: {error}: remove it with `pachctl delete file`") from error
    return VectorRepo(commit, tables)


def read_pictures(connection: Connection) -> dict[str, str]:
    """The ids of the pictures in the newest index by the true paths of their files; none without one."""
    index = connection.retry(Repository(connection, "index").good)
    found: dict[str, str] = {}
    for _, content in () if index is None else index.read_all(f"/*/{TABLE}"):
        table = read_columns(io.BytesIO(content), ["id", "sources"])
        sources = SourceColumn(table["sources"].combine_chunks())
        of = pc.list_parent_indices(sources.stored)
        found |= zip(sources.paths, table["id"].combine_chunks().take(of).to_pylist(), strict=True)
    return found


def fetch(connection: Connection, repo: VectorRepo, batch: str, scratch: Path) -> Vectors:
    """The vectors of a batch, float32 (n, d), memory-mapped out of a file in `scratch`."""
    to = scratch / f"{batch.replace('/', '-')}{vector_files.SUFFIX}"
    if not to.exists():
        with to.open("wb") as file:
            Repository(connection, REPO, repo.commit).fetch(f"{batch}{vector_files.SUFFIX}", file)
    return vector_files.read_vectors(to, repo.tables[batch].dimension)


def without(
    connection: Connection, repo: VectorRepo, gone: Mapping[str, Sequence[str]], scratch: Path
) -> list[FileEdit]:
    """The edits that take pictures out of batches. gone: their ids by the batch."""
    edits: list[FileEdit] = []
    for batch, ids in gone.items():
        edits += [DeleteFile(f"{batch}{suffix}") for suffix in (SUFFIX, vector_files.SUFFIX)]
        table, left_out = repo.tables[batch], {*ids}
        rows = [row for row, id in enumerate(table.ids) if id not in left_out]
        if rows:
            left = replace(table, ids=[table.ids[row] for row in rows])
            edits += VectorBatch(left, fetch(connection, repo, batch, scratch), rows).edits(scratch)
    return edits


def write(connection: Connection, repo: VectorRepo, edits: Sequence[FileEdit]) -> str:
    """Applies edits of what was read, as one commit; returns its id. Raises LookalikeError if others have changed the
    vectors since."""
    deployment.make_repo(connection, REPO)
    try:
        return Repository(connection, REPO).write(edits, onto=repo.commit or None)
    except MovedHeadError as error:
        raise LookalikeError("the vectors have changed meanwhile, and nothing was put: run this again") from error
