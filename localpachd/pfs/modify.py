"""Writing files: one stream of additions, removals and copies, applied to a commit as one step."""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from localpachd import ids
from localpachd.errors import NotFound, PachError
from localpachd.pfs import commits, contents
from localpachd.pfs.service import Pfs
from localpachd.pfs.transaction import Transaction
from localpachd.pfs.values import Branch, Commit, CommitInfo
from localpachd.storage import paths
from localpachd.storage.chunks import Chunks
from localpachd.storage.filesets import Content, File


@dataclass(frozen=True, slots=True)
class Addition:
    """Content to append to what the path already holds; the content is in the chunk store."""

    path: str
    tag: str
    content: Content


@dataclass(frozen=True, slots=True)
class Removal:
    """A file to remove or, with a trailing slash, everything below a directory."""

    path: str
    tag: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A file or directory to copy from a readable commit, over or behind what is there. `source_tag` restricts what is
    read to one datum's files. Nothing at the source copies nothing, as in Pachyderm."""

    source: Commit
    source_path: str
    source_tag: str
    path: str
    tag: str
    append: bool


Change = Addition | Removal | Copy


def modify(pfs: Pfs, target: Commit, changes: Iterable[Change]) -> None:
    """Applies changes in order and all at once: to the open commit that `target` names, or, where it names a branch
    without one, to a commit of their own, which is finished with them.

    A target that cannot be written to is refused before the first change is asked for.
    """
    with pfs.db.read() as conn:
        _place(conn, target, pfs.spout)
    listed = list(changes)
    pfs.chunks.flush()
    pfs.transact(lambda txn: _apply(txn, pfs.chunks, target, listed))


def _apply(txn: Transaction, chunks: Chunks, target: Commit, changes: Iterable[Change]) -> None:
    place = _place(txn.conn, target, txn.spout)
    own = isinstance(place, Branch)
    commit = commits.resolve(txn.conn, commits.start(txn, place)) if isinstance(place, Branch) else place
    staged = _Staged(txn.conn, chunks, commit, changes)
    # What was appended to older content has made chunks of its own.
    chunks.flush()
    contents.add_layer(txn, commit, staged.entries())
    if own:
        commits.finish(txn, commit.commit)


def _place(conn: sqlite3.Connection, target: Commit, spout: Branch | None) -> CommitInfo | Branch:
    """The open commit to write into, or the branch that is to get a commit for this."""
    named = ids.is_id(target.id)
    branch = Branch(target.repo, target.branch or ("" if named else target.id))
    try:
        info = commits.resolve(conn, target)
    except NotFound:
        if not branch.name:
            raise
    else:
        if info.finishing is None:
            return info
        if named:
            raise PachError(f"commit {info.commit} has already finished")
    commits.check_start(conn, branch, spout)
    return branch


class _Staged:
    """The changes of one stream as the entries of one layer."""

    def __init__(self, conn: sqlite3.Connection, chunks: Chunks, commit: CommitInfo, changes: Iterable[Change]) -> None:
        self._conn = conn
        self._chunks = chunks
        self._before = contents.fileset(conn, commit)
        self._staged: dict[tuple[str, str], Content | None] = {}
        for change in changes:
            match change:
                case Addition(path, tag, content):
                    self._add(path, tag, content)
                case Removal(path, tag):
                    self._remove(path, tag)
                case Copy():
                    self._copy(change)

    def entries(self) -> Iterator[tuple[str, str, Content | None]]:
        for path, tag in sorted(self._staged):
            yield path, tag, self._staged[path, tag]

    def _current(self, path: str, tag: str) -> Content | None:
        if (path, tag) in self._staged:
            return self._staged[path, tag]
        found = self._before.find(path, tag)
        return found.content if found else None

    def _add(self, path: str, tag: str, content: Content) -> None:
        if path == "/":
            raise PachError("path (/) invalid: the root directory is no file")
        current = self._current(path, tag)
        if current is not None and current.size:
            content = self._chunks.append(current, self._chunks.read(content)) if content.size else current
        self._staged[path, tag] = content

    def _remove(self, path: str, tag: str) -> None:
        if not path.endswith("/"):
            self._staged[path, tag] = None
            return
        for key in self._staged:
            if key[0].startswith(path) and key[1] == tag:
                self._staged[key] = None
        for file in self._before.tagged(tag).under(path):
            self._staged[file.path, tag] = None

    def _copy(self, change: Copy) -> None:
        origin = paths.clean(change.source_path)
        stem = len(origin.rstrip("/"))
        for file in self._source(change, origin):
            path = paths.clean(change.path + file.path[stem:])
            if not change.append:
                self._remove(path, change.tag)
            self._add(path, change.tag, file.content)

    def _source(self, change: Copy, origin: str) -> Iterator[File]:
        files = contents.fileset(self._conn, commits.resolve(self._conn, change.source))
        if change.source_tag:
            files = files.tagged(change.source_tag)
        return chain(files.get(origin), files.under(origin))
