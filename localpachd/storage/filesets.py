"""File sets: immutable layers of (path, tag) entries in SQLite and the merged view over them. Knows no commits."""

import heapq
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import itemgetter

from localpachd import ids
from localpachd.storage import paths

FileSetRef = tuple[int, ...]
"""The layers of a file set, oldest first; the form in which a file set crosses rooms."""

DEFAULT_TAG = "default"
"""The datum tag of files that users write; job output has the datum's id."""

_HASH_BYTES = 32
_LAYERS_PER_QUERY = 50  # well below SQLite's limit of 500 terms in one compound SELECT
# Those who want only a few rows read a short page; it costs others nothing.
_FIRST_PAGE, _PAGE = 64, 2048
_PAGE_BYTES = 1 << 20

EntryRow = tuple[str, str, int, bytes | None]
"""(path, tag, size, concatenated chunk hashes or None for a tombstone), as in the table `entries`."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of a file by reference: `size` bytes in `chunks`, 32-byte hashes in order; () for the empty file."""

    size: int
    chunks: tuple[bytes, ...]

    @property
    def hash(self) -> bytes:
        """The file's 32-byte hash."""
        return ids.file_hash(self.chunks)


@dataclass(frozen=True, slots=True)
class TaggedFile:
    """A regular file of a file set; `path` is absolute, `tag` the datum tag it was written with."""

    path: str
    tag: str
    content: FileContent


LayerEntry = tuple[str, str, FileContent | None]
"""A path, a datum tag, and the content; None removes the file of this tag there."""


def write_layer(conn: sqlite3.Connection, entries: Iterable[LayerEntry]) -> int:
    """Stores a new layer of entries in any order and returns its id.

    Of two entries with one path and tag the later counts. Streams `entries`.
    """
    layer = _new_layer(conn)
    rows = ((layer, path, tag, *_packed(content)) for path, tag, content in entries)
    conn.executemany("INSERT OR REPLACE INTO entries (layer, path, tag, size, chunks) VALUES (?, ?, ?, ?, ?)", rows)
    _count(conn, layer)
    return layer


def compact(conn: sqlite3.Connection, layers: Sequence[int], bottom: bool = True) -> FileSetRef:
    """An equal file set of O(log n) layers: merges some into new layers, and never changes the given ones.

    In the result each layer has more entries than all newer ones together. A merge at least doubles the layer of an old
    entry, so each entry is rewritten O(log n) times while a file set grows. Empty layers are left out. If the oldest
    layer is merged, tombstones are dropped, unless `bottom` is False: the layers lie on top of others.
    """
    sizes = _sizes(conn, layers)
    kept = [layer for layer in _distinct(layers) if sizes[layer]]
    newer = 0
    first = len(kept)  # the oldest layer to merge with all newer ones
    for position in range(len(kept) - 1, -1, -1):
        if newer >= sizes[kept[position]]:
            first = position
        newer += sizes[kept[position]]
    if first == len(kept):
        return tuple(kept)
    return (*kept[:first], *_combined(conn, kept[first:], drop_tombstones=bottom and first == 0))


def merge(conn: sqlite3.Connection, layers: Sequence[int]) -> FileSetRef:
    """An equal file set of one new layer without hidden entries, or of none if it is empty. The given layers are not
    changed and do not lie on top of others."""
    return _combined(conn, _distinct(layers), drop_tombstones=True)


class FileSet:
    """The merged view of layers, oldest first: the newest entry of each (path, tag) counts. Valid while `conn` is.

    With `tag`, only files of that datum tag are seen. Layers do not change: outside of a snapshot it stays valid within
    one of `ChunkStore.uses`, and then nothing is held while the caller of `walk` or `rows` waits.
    """

    def __init__(self, conn: sqlite3.Connection, layers: Sequence[int], tag: str | None = None) -> None:
        self._conn = conn
        self._tag = tag
        self.layers: FileSetRef = tuple(_distinct(layers))

    def tagged(self, tag: str) -> "FileSet":
        """The part of this file set that has one datum tag."""
        return FileSet(self._conn, self.layers, tag)

    def weight(self) -> int:
        """The number of entries in all layers: at least the number of files."""
        return sum(_sizes(self._conn, self.layers).values())

    def get(self, path: str) -> list[TaggedFile]:
        """The files at exactly `path`, one for each tag that wrote it, sorted by tag."""
        return [_file(row) for row in self._merged("path = ?", (path,), "tag")]

    def find(self, path: str, tag: str) -> TaggedFile | None:
        """The file that `tag` wrote at exactly `path`."""
        rows = self._merged("path = ? AND tag = ?", (path, tag), "tag")
        return next(map(_file, rows), None)

    def mentions(self, path: str) -> bool:
        """Whether the layers have an entry for exactly `path`, even a tombstone."""
        return next(self._merged("path = ?", (path,), "tag", tombstones=True), None) is not None

    def walk(self, prefix: str = "/", lower: str | None = None, upper: str | None = None) -> Iterator[TaggedFile]:
        """The files whose path starts with the string `prefix`, lower <= path < upper, in byte order of path, then tag.

        Streams, in pages.
        """
        return map(_file, self.rows(prefix, lower, upper))

    def under(self, directory: str) -> Iterator[TaggedFile]:
        """The files anywhere below a directory, with or without its trailing slash, in path order."""
        return self.walk(paths.directory(directory))

    def of_tag(self, tag: str) -> Iterator[TaggedFile]:
        """The files that one datum tag wrote, in path order. Uses an index."""
        return map(_file, self._merged("tag = ?", (tag,), "path", index="INDEXED BY entries_by_tag"))

    def entries(self) -> Iterator[LayerEntry]:
        """The newest entry of each path and tag, sorted by these; tombstones too."""
        for path, tag, size, chunks in self._merged("path >= ?", ("",), "path, tag", tombstones=True):
            yield path, tag, None if chunks is None else unpacked(size, chunks)

    def rows(self, prefix: str = "/", lower: str | None = None, upper: str | None = None) -> Iterator[EntryRow]:
        """As `walk`, but raw rows, for hashing trees: several times faster than files."""
        tops = [top for top in (paths.after(prefix), upper) if top is not None]
        end, ends = (" AND path < ?", [min(tops)]) if tops else ("", [])
        most = _FIRST_PAGE
        page = _page(self._merged(f"path >= ?{end}", [max(prefix, lower or ""), *ends], "path, tag"), most)
        while page:
            yield from page
            path, tag, _, _ = page[-1]
            most = min(4 * most, _PAGE)
            after = f"path >= ? AND (path > ? OR tag > ?){end}"
            page = _page(self._merged(after, [path, path, tag, *ends], "path, tag"), most)

    def _merged(
        self, where: str, values: Sequence[str], order: str, index: str = "", tombstones: bool = False
    ) -> Iterator[EntryRow]:
        if self._tag is not None:
            where, values = f"{where} AND tag = ?", [*values, self._tag]
        ranked = [(rank, layer) for rank, layer in enumerate(self.layers)]
        parts = []
        while ranked:
            parts.append(self._query(ranked[:_LAYERS_PER_QUERY], where, values, order, index))
            del ranked[:_LAYERS_PER_QUERY]
        if not parts:
            return iter(())
        if len(self.layers) == 1:
            return (row[:4] for row in parts[0] if tombstones or row[3] is not None)
        return _newest(parts[0] if len(parts) == 1 else heapq.merge(*parts, key=itemgetter(0, 1)), tombstones)

    def _query(
        self, ranked: Sequence[tuple[int, int]], where: str, values: Sequence[str], order: str, index: str
    ) -> Iterator[tuple[str, str, int, bytes | None, int]]:
        """One pass over some layers in the given order. SQLite merges the layers' index scans without sorting."""
        terms = [
            f"SELECT path, tag, size, chunks, {rank} FROM entries {index} WHERE layer = ? AND {where}"
            for rank, _ in ranked
        ]
        arguments = [argument for _, layer in ranked for argument in (layer, *values)]
        cursor = self._conn.cursor()
        cursor.row_factory = None
        with closing(cursor):
            yield from cursor.execute(f"{' UNION ALL '.join(terms)} ORDER BY {order}", arguments)


def _page(rows: Iterator[EntryRow], most: int) -> list[EntryRow]:
    """The first rows, up to a number of them and about so many bytes; ends the statements that they come from."""
    page: list[EntryRow] = []
    size = 0
    for row in rows:
        page.append(row)
        size += len(row[3] or b"")
        if len(page) == most or size >= _PAGE_BYTES:
            break
    return page


def _newest(rows: Iterator[tuple[str, str, int, bytes | None, int]], tombstones: bool = False) -> Iterator[EntryRow]:
    """Of adjacent rows with one path and tag the one of the highest rank, unless that is an unwanted tombstone."""
    best = next(rows, None)
    if best is None:
        return
    for row in rows:
        if row[0] != best[0] or row[1] != best[1]:
            if tombstones or best[3] is not None:
                yield best[:4]
            best = row
        elif row[4] > best[4]:
            best = row
    if tombstones or best[3] is not None:
        yield best[:4]


def _combined(conn: sqlite3.Connection, layers: Sequence[int], drop_tombstones: bool) -> FileSetRef:
    """Merges layers into a new one, or none if no entry is left."""
    merged = _new_layer(conn)
    for layer in layers:  # oldest first, so that newer entries replace
        conn.execute(
            "INSERT OR REPLACE INTO entries (layer, path, tag, size, chunks)"
            " SELECT ?, path, tag, size, chunks FROM entries WHERE layer = ? ORDER BY path, tag",
            (merged, layer),
        )
    if drop_tombstones:
        conn.execute("DELETE FROM entries WHERE layer = ? AND chunks IS NULL", (merged,))
    _count(conn, merged)
    return (merged,) if _sizes(conn, (merged,))[merged] else ()


def _new_layer(conn: sqlite3.Connection) -> int:
    layer = conn.execute("INSERT INTO layers (entries) VALUES (0)").lastrowid
    assert layer is not None
    return layer


def _count(conn: sqlite3.Connection, layer: int) -> None:
    conn.execute("UPDATE layers SET entries = (SELECT count(*) FROM entries WHERE layer = ?1) WHERE id = ?1", (layer,))


def _sizes(conn: sqlite3.Connection, layers: Sequence[int]) -> dict[int, int]:
    """The number of entries of each of these layers."""
    rows = conn.execute(
        "SELECT id, entries FROM layers WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(layers),)
    )
    found = {row[0]: row[1] for row in rows}
    for layer in layers:
        if layer not in found:
            raise KeyError(f"layer {layer} was deleted: a file set was used after the commit or file set that held it")
    return found


def _distinct(layers: Sequence[int]) -> list[int]:
    """Each layer once, at its newest position."""
    return list(dict.fromkeys(reversed(layers)))[::-1]


def _packed(content: FileContent | None) -> tuple[int, bytes | None]:
    return (0, None) if content is None else (content.size, b"".join(content.chunks))


def _file(row: EntryRow) -> TaggedFile:
    path, tag, size, chunks = row
    return TaggedFile(path, tag, unpacked(size, chunks or b""))


def unpacked(size: int, chunks: bytes) -> FileContent:
    """The content of a row of the table `entries`."""
    return FileContent(size, chunk_hashes(chunks))


def chunk_hashes(chunks: bytes) -> tuple[bytes, ...]:
    """The hashes of a row of the table `entries`."""
    if len(chunks) == _HASH_BYTES:
        return (chunks,)
    return tuple(chunks[at : at + _HASH_BYTES] for at in range(0, len(chunks), _HASH_BYTES))
