"""Owns the disk space of a server's state, beside the least that it needs: the source files, and one copy each of
coded pictures, vectors and thumbnails. Reads the sizes of the server's files, never their content."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from benchmarks.kit import disk
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from stages.files.pack_tables import read_table
from stages.files.tables.image_table import ImageTable
from stages.files.tables.index_table import TABLE, IndexTable

TRASH = "trash"
"""The purpose of chunks that are garbage: a server deletes them a day later."""

_BRANCH = "master"


@dataclass(frozen=True, slots=True)
class Needed:
    """The least bytes needed: the files that were put, and one copy of everything else."""

    sources: int
    coded: int
    vectors: int
    thumbnails: int

    @property
    def total(self) -> int:
        return self.sources + self.coded + self.vectors + self.thumbnails


def needed(connection: Connection, sources: int) -> Needed:
    """The bytes that the current library and queries need: those of the files that were put, given as `sources`, and
    one copy of each distinct picture as it is coded in its pack, its vector (4 bytes a number) and its thumbnail."""
    vectors = thumbnails = 0
    coded = _coded(connection, "preprocess", "/library/*/*.pack")
    coded += _coded(connection, "preprocess-queries", "/queries/*/*.pack")
    for content in _files(connection, "index", f"/*/{TABLE}"):
        table = IndexTable.read(content)
        vectors += len(table) * table.origin.dimension * 4
        thumbnails += sum(map(int, table.thumbnail_sizes))
    for content in _files(connection, "features-queries", "/queries/*/*/images.parquet"):
        asked = ImageTable.read(content)
        vectors += len(asked) * asked.origin.dimension * 4
        thumbnails += sum(map(int, asked.thumbnail_sizes))
    return Needed(sources, coded, vectors, thumbnails)


def _coded(connection: Connection, repo: str, pattern: str) -> int:
    """The bytes of the distinct pictures in packs."""
    source, found = Repository(connection, repo), dict[str, int]()
    for pack in source.glob(pattern):
        found |= {row.id: row.length for row in read_table(partial(source.read, pack.path)).rows}
    return sum(found.values())


def _files(connection: Connection, repo: str, pattern: str) -> Iterator[io.BytesIO]:
    for _, content in Repository(connection, repo).read_all(pattern):
        yield io.BytesIO(content)


def on_disk(root: Path) -> dict[str, int]:
    """The disk space of the files of a root directory in bytes, by purpose."""
    found: dict[str, int] = {}
    for path, size in disk.files(root):
        kind = _kind(path.relative_to(root))
        found[kind] = found.get(kind, 0) + size
    return {kind: size for kind, size in sorted(found.items()) if size}


def _kind(path: Path) -> str:
    if path.parts[0] == "chunks":
        if path.parts[1] == TRASH:
            return TRASH
        return "small chunks" if path.name.startswith("small.sqlite") else "chunks"
    return "database" if path.name.startswith("pachd.sqlite") else path.parts[0]


def by_repo(connection: Connection) -> dict[str, int]:
    """The bytes of the newest commit of every repo, meta repos included. Content in several repos is stored once, so
    the sum may exceed the disk space."""
    stub = pfs_pb2_grpc.APIStub(connection.client._channel)
    found = {}
    for info in stub.ListRepo(pfs_pb2.ListRepoRequest(type="")):
        if info.repo.type == "spec":
            continue
        branch = pfs_pb2.Branch(repo=info.repo, name=_BRANCH)
        request = pfs_pb2.InspectCommitRequest(
            commit=pfs_pb2.Commit(repo=info.repo, branch=branch), wait=pfs_pb2.CommitState.FINISHED
        )
        name = info.repo.name if info.repo.type == "user" else f"{info.repo.name}.{info.repo.type}"
        found[name] = stub.InspectCommit(request).details.size_bytes
    return found


def empty_commits(connection: Connection, repos: list[str]) -> str:
    """Makes an empty commit in each of the repos, all in one commit set, and returns its id."""
    client = connection.client
    with client.transaction():
        commits = [client.start_commit(repo, _BRANCH) for repo in repos]
        for each in commits:
            client.finish_commit(each)
    (new,) = {each.id for each in commits}
    client.wait_commit(new)
    return str(new)


def squash_before(connection: Connection, repos: list[str], new: str) -> None:
    """Squashes all commit sets that were made before that commit in each of the repos, newest first."""
    infos = [info for repo in repos for info in connection.client.list_commit(repo)]
    old = {info.commit.id: info.started.ToNanoseconds() for info in infos if info.commit.id != new}
    for each in sorted(old, key=lambda id: old[id], reverse=True):
        connection.client.squash_commit(each)
