"""File sets that clients hold by id: trees outside of any repo, which expire.

A file set is a change as well as a tree: on top of another file set, or in a commit, it removes the paths that it
removed, replaces those that it replaced, and appends to those that it only appended to.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from localpachd import ids
from localpachd.errors import NotFound, PachError
from localpachd.pfs import commits, contents
from localpachd.pfs.pfs_entities import FILE_SETS, Commit, CommitInfo
from localpachd.pfs.transaction import Transaction
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileSet, FileSetRef, LayerEntry, TaggedFile, compact, write_layer
from localpachd.storage.patterns import regular_expression

SECOND = 1_000_000_000
DEFAULT_TTL = 600 * SECOND
"""The default lifetime of a file set in nanoseconds."""
MAX_TTL = 1800 * SECOND
"""The longest lifetime in nanoseconds that a renewal can request."""
_LONGEST = 1 << 61
"""The longest lifetime of any file set in nanoseconds: 73 years."""

_PARTS = ("replacing", "appending")
# File sets in the cache do not expire.
_EXPIRED = "(expires <= ? AND id NOT IN (SELECT fileset FROM cached_filesets))"


@dataclass(frozen=True, slots=True)
class FileSetLayers:
    """The layers of a file set in two parts, oldest first. No path and tag is in both: entries of `replacing`, even
    tombstones, count instead of those below; entries of `appending` are appended to those below."""

    replacing: FileSetRef = ()
    appending: FileSetRef = ()

    @property
    def tree(self) -> FileSetRef:
        """The layers that the file set reads as with nothing below it."""
        # Removals in `appending` only undo what older layers append, so they must hide nothing in `replacing`.
        return self.appending + self.replacing


def keep(txn: Transaction, layers: FileSetLayers, ttl: int = DEFAULT_TTL) -> str:
    """Keeps a file set for `ttl` nanoseconds and returns its id. Deletes expired ones. PachError for a time that is not
    positive, or beyond all measure."""
    if not 0 < ttl <= _LONGEST:
        raise PachError(f"ttl ({ttl}) must be at least one second, and at most {_LONGEST}")
    forget_expired(txn)
    made = ids.new_id()
    txn.conn.execute("INSERT INTO filesets VALUES (?, ?)", (made, txn.now + ttl))
    for part, found in zip(_PARTS, (layers.replacing, layers.appending), strict=True):
        txn.conn.executemany(
            "INSERT INTO fileset_layers VALUES (?, ?, ?, ?)",
            [(made, part, position, layer) for position, layer in enumerate(found)],
        )
    return made


def find(conn: sqlite3.Connection, text: str, now: int) -> FileSetLayers:
    """The layers of a file set. Raises PachError if the text is not a valid id, or if the file set does not exist at
    `now` (nanoseconds since the epoch)."""
    wanted = parse(text)
    if not conn.execute(f"SELECT 1 FROM filesets WHERE id = ? AND NOT {_EXPIRED}", (wanted, now)).fetchone():
        raise PachError(f"path does not exist: file set {wanted} has expired or was never made")
    return FileSetLayers(*(_stored(conn, wanted, part) for part in _PARTS))


def renew(txn: Transaction, text: str, ttl: int) -> None:
    """Keeps a file set for `ttl` nanoseconds from now."""
    wanted = parse(text)
    if ttl < SECOND:
        raise PachError(f"ttl ({ttl}) must be at least one second")
    if ttl > MAX_TTL:
        raise PachError(f"ttl ({ttl}) exceeds max ttl ({MAX_TTL})")
    there = f"UPDATE filesets SET expires = ? WHERE id = ? AND NOT {_EXPIRED}"
    if not txn.conn.execute(there, (txn.now + ttl, wanted, txn.now)).rowcount:
        raise NotFound(f"tracker does not contain item: (fileset/{wanted})")


def forget_expired(txn: Transaction) -> None:
    """Deletes the rows of expired file sets; the next sweep deletes layers that only they refer to."""
    old = f"FROM filesets WHERE {_EXPIRED}"
    txn.conn.execute(f"DELETE FROM fileset_layers WHERE fileset IN (SELECT id {old})", (txn.now,))
    txn.conn.execute(f"DELETE {old}", (txn.now,))


def compose(conn: sqlite3.Connection, chunks: ChunkStore, below: FileSetLayers, above: FileSetLayers) -> FileSetLayers:
    """One file set with the effect of one followed by another. Writes layers only for paths that are in both."""
    under, ahead = FileSet(conn, below.replacing), FileSet(conn, below.appending)
    replaced: list[LayerEntry] = []
    appended: list[LayerEntry] = []
    for path, tag, _ in FileSet(conn, above.replacing).entries():
        if ahead.find(path, tag) is not None:
            appended.append((path, tag, None))
    for path, tag, content in FileSet(conn, above.appending).entries():
        if content is None:
            continue
        if under.tagged(tag).mentions(path):
            found = under.find(path, tag)
            replaced.append((path, tag, chunks.concatenate(found.content, content) if found else content))
            appended.append((path, tag, None))
        elif (found := ahead.find(path, tag)) is not None:
            appended.append((path, tag, chunks.concatenate(found.content, content)))
    return FileSetLayers(
        (*below.replacing, *above.replacing, *_written(conn, replaced)),
        (*below.appending, *above.appending, *_written(conn, appended)),
    )


def compose_all(conn: sqlite3.Connection, chunks: ChunkStore, parts: Sequence[FileSetLayers]) -> FileSetLayers:
    """One file set with the effect of all of these, in order."""
    whole = FileSetLayers()
    for part in parts:
        whole = compose(conn, chunks, whole, part)
    return FileSetLayers(compact(conn, whole.replacing, bottom=False), compact(conn, whole.appending))


def add_to_commit(txn: Transaction, chunks: ChunkStore, commit: Commit, text: str) -> None:
    """Puts a file set into an open commit."""
    info = commits.resolve(txn.conn, commit)
    below = contents.to_extend(txn.conn, info).layers
    whole = compose(txn.conn, chunks, FileSetLayers(below), find(txn.conn, text, txn.now))
    contents.attach(txn, info, FileSetLayers(whole.replacing[len(below) :], whole.appending).tree)


def shards(files: FileSet, most_files: int, most_bytes: int) -> Iterator[tuple[str, str]]:
    """Ranges (lower, upper) of paths that cover a file set, each with so many files or bytes, or slightly more, since
    the files of one path stay together; "" means no bound."""
    lower = previous = ""
    count = size = 0
    for file in files.walk():
        if file.path != previous and (count >= most_files or size >= most_bytes):
            yield lower, file.path
            lower, count, size = file.path, 0, 0
        previous = file.path
        count += 1
        size += file.content.size
    yield lower, ""


def select(files: FileSet, ranges: Iterable[tuple[str, str]], expressions: Iterable[str]) -> Iterator[TaggedFile]:
    """The files whose paths lie in all ranges (lower, upper; "" means no bound) and contain matches of all regular
    expressions, in path order. Raises InvalidArgument for an invalid expression, before the first file."""
    bounds = list(ranges)
    lower = max((each for each, _ in bounds), default="")
    upper = min((each for _, each in bounds if each), default=None)
    compiled = [regular_expression(each) for each in expressions]
    return (file for file in files.walk("/", lower, upper) if all(each.search(file.path) for each in compiled))


def opened(conn: sqlite3.Connection, commit: Commit, now: int) -> tuple[CommitInfo, FileSet]:
    """The commit and content that a reference names: in the repo `__filesets__`, those of the file set with this id,
    whose commit has no branch and was finished at time 0. UnfinishedCommit for one that is closed and not finished."""
    if commit.repo.name != FILE_SETS:
        info = commits.resolve(conn, commit)
        return info, contents.settled(conn, info)
    found = find(conn, commit.id, now)
    virtual = CommitInfo(0, commit, "USER", "FileSet - Virtual Commit", None, (), 0, None, 0, (), "", None)
    return virtual, FileSet(conn, found.tree)


def parse(text: str) -> str:
    """A file set's id in the form in which it is stored. Raises PachError if it is not a valid id."""
    plain = text.replace("-", "")
    if len(plain) != 32:
        wrong = "short" if len(plain) < 32 else "long"
        raise PachError(f"parsing fileset.ID: too {wrong} to be ID len={len(plain)}")
    bad = next((letter for letter in plain if letter not in "0123456789abcdefABCDEF"), None)
    if bad is not None:
        raise PachError(f"encoding/hex: invalid byte: U+{ord(bad):04X} {bad!r}")
    return plain.lower()


def _stored(conn: sqlite3.Connection, fileset: str, part: str) -> FileSetRef:
    rows = conn.execute(
        "SELECT layer FROM fileset_layers WHERE fileset = ? AND part = ? ORDER BY position", (fileset, part)
    )
    return tuple(row[0] for row in rows)


def _written(conn: sqlite3.Connection, entries: Sequence[LayerEntry]) -> FileSetRef:
    return (write_layer(conn, entries),) if entries else ()
