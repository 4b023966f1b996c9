"""Trees: the directories above the files of a file set, with their hashes and sizes. Knows no commits.

Directories are not stored: each comes right before its first file, its path with a trailing slash. Files stream; memory
grows only with the number of directories.
"""

import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from localpachd import ids
from localpachd.storage import paths, patterns
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import EntryRow, FileContent, FileSet, unpacked


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A file, or a directory (its path ends in a slash, its tag is "", it has no content). `size` in bytes, for a
    directory that of all files below; `hash` has 32 bytes."""

    path: str
    is_dir: bool
    size: int
    hash: bytes
    tag: str
    content: FileContent | None


def inspect(fs: FileSet, path: str) -> TreeNode | None:
    """The node at a path, with or without a directory's trailing slash; None if there is none, as for the root of an
    empty file set."""
    return next(_plain(fs, paths.clean(path)), None)


def children(fs: FileSet, path: str, lower: str | None = None, upper: str | None = None) -> Iterator[TreeNode]:
    """The immediate entries of a directory; a file lists itself; nothing for a path that does not exist.

    All readers here yield nodes in byte order of their paths, limited to `lower` <= path < `upper`.
    """
    base = paths.clean(path)
    above = paths.directory(base)
    here = len(above)

    def immediate(candidate: str) -> bool:
        return len(candidate) > here and candidate.find("/", here, -1) < 0

    return chain(_itself(fs, base, lower, upper), _flat(fs, above, immediate, lower, upper))


def walk(fs: FileSet, path: str, lower: str | None = None, upper: str | None = None) -> Iterator[TreeNode]:
    """A node and everything below it; nothing for a path that does not exist."""
    base = paths.clean(path)
    above = paths.directory(base)
    return chain(
        _itself(fs, base, lower, upper), _nested(fs, above, lambda candidate: candidate.startswith(above), lower, upper)
    )


def glob(fs: FileSet, pattern: str, lower: str | None = None, upper: str | None = None) -> Iterator[TreeNode]:
    """Every file and directory whose path without trailing slash matches. Raises InvalidArgument for a bad pattern."""
    compiled = patterns.glob(pattern)
    if compiled.literal:
        return (node for node in _plain(fs, compiled.literal_prefix) if _within(node.path, lower, upper))
    if compiled.depth is not None:
        return _flat(fs, compiled.literal_prefix, compiled.matches, lower, upper)
    return _nested(fs, compiled.literal_prefix, compiled.matches, lower, upper)


def archive(fs: FileSet, pattern: str, lower: str | None = None, upper: str | None = None) -> Iterator[TreeNode]:
    """The nodes that GetFileTAR sends: every match of the pattern and everything below matching directories, each once.

    A directory before `lower` does not count as a match, so of the nodes below it only those that match are sent.
    """
    compiled = patterns.glob(pattern)
    if compiled.literal and lower is None:
        return walk(fs, compiled.literal_prefix, None, upper)
    whole = ""  # the last directory that matched

    def wanted(candidate: str) -> bool:
        nonlocal whole
        if whole and candidate.startswith(whole):
            return True
        matched = compiled.matches(candidate)
        if matched and candidate.endswith("/"):
            whole = candidate
        return matched

    return _nested(fs, compiled.literal_prefix, wanted, lower, upper)


def diff(
    fs_new: FileSet, fs_old: FileSet, path_new: str, path_old: str
) -> Iterator[tuple[TreeNode | None, TreeNode | None]]:
    """The (new, old) pairs that differ in hash, directories included, in path order; None if a side has no node."""
    new, old = walk(fs_new, path_new), walk(fs_old, path_old)
    one, other = next(new, None), next(old, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one.path < other.path):
            yield one, None
            one = next(new, None)
        elif one is None or other.path < one.path:
            yield None, other
            other = next(old, None)
        else:
            if one.hash != other.hash:
                yield one, other
            one, other = next(new, None), next(old, None)


def _itself(fs: FileSet, path: str, lower: str | None = None, upper: str | None = None) -> Iterator[TreeNode]:
    """The files at exactly this clean path, one for each tag."""
    beyond = path + "\0"
    return (_file(row) for row in fs.rows(path, lower, beyond if upper is None else min(upper, beyond)))


def _plain(fs: FileSet, path: str) -> Iterator[TreeNode]:
    """The files at exactly this clean path, then the directory, if they exist."""
    yield from _itself(fs, path)
    above = paths.directory(path)
    summary = _Summaries(fs).get(above)
    if summary is not None:
        yield _directory(above, *summary)


def _nested(
    fs: FileSet, prefix: str, wanted: Callable[[str], bool], lower: str | None, upper: str | None
) -> Iterator[TreeNode]:
    """The wanted nodes among those whose path starts with `prefix`, each directory before what it holds.

    A wanted directory, with all directories below it, is first read once for its size and hash.
    """
    summaries = _Summaries(fs)
    current = ""  # the innermost directory that is open
    for row in fs.rows(prefix, lower):
        path = row[0]
        while not path.startswith(current):
            current = current[: current.rfind("/", 0, -1) + 1]
        while (slash := path.find("/", len(current))) >= 0:
            current = path[: slash + 1]
            if current.startswith(prefix) and _within(current, lower, upper) and wanted(current):
                summary = summaries.get(current)
                if summary is not None:
                    yield _directory(current, *summary)
        if upper is not None and path >= upper:
            return
        if wanted(path):
            yield _file(row)


def _flat(
    fs: FileSet, prefix: str, wanted: Callable[[str], bool], lower: str | None, upper: str | None
) -> Iterator[TreeNode]:
    """As `_nested`, for wanted nodes that are never below each other: reading once is enough."""
    if lower is not None or upper is not None:
        yield from _nested(fs, prefix, wanted, lower, upper)
        return
    stack = _Stack()
    for row in fs.rows(prefix):
        path, _, size, chunks = row
        for closed, total, digest in stack.enter(path):
            if wanted(closed):
                yield _directory(closed, total, digest)
        file_hash = ids.file_hash((chunks or b"",))
        stack.add(size, file_hash)
        if wanted(path):
            yield _file(row, file_hash)
    for closed, total, digest in stack.enter(""):
        if closed.startswith(prefix) and wanted(closed):
            yield _directory(closed, total, digest)


class _Open:
    """A directory whose entries are being read."""

    __slots__ = ("hash", "path", "size")

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self.hash = ids.directory_hash()


class _Stack:
    """The open directories while going through files in path order; sums up each until the paths leave it."""

    def __init__(self) -> None:
        self._open = [_Open("")]  # the parent of the root is never read
        self._current = ""

    def enter(self, path: str) -> Iterator[tuple[str, int, bytes]]:
        """Closes the directories that do not hold `path` and opens those that do; yields (path, size, hash) of each
        closed one, innermost first. "" closes all."""
        while not path.startswith(self._current):
            left = self._open.pop()
            self._current = self._open[-1].path
            digest = left.hash.digest()
            self.add(left.size, digest)
            yield left.path, left.size, digest
        while (slash := path.find("/", len(self._current))) >= 0:
            self._current = path[: slash + 1]
            self._open.append(_Open(self._current))

    def add(self, size: int, digest: bytes) -> None:
        """Adds an entry to the innermost open directory."""
        innermost = self._open[-1]
        innermost.size += size
        innermost.hash.update(digest)


class _Summaries:
    """Sizes and hashes of directories, requested in path order: one reading serves a directory and all below it."""

    def __init__(self, fs: FileSet) -> None:
        self._fs = fs
        self._known: dict[str, tuple[int, bytes]] = {}

    def get(self, directory: str) -> tuple[int, bytes] | None:
        """(size, hash) of a directory given with its trailing slash; None if it has no file."""
        if directory not in self._known:
            self._known = {path: (size, digest) for path, size, digest in self._read(directory)}
        return self._known.get(directory)

    def _read(self, directory: str) -> Iterator[tuple[str, int, bytes]]:
        stack = _Stack()
        for path, _, size, chunks in self._fs.rows(directory):
            yield from stack.enter(path)
            stack.add(size, ids.file_hash((chunks or b"",)))
        yield from (closed for closed in stack.enter("") if closed[0].startswith(directory))


def _within(path: str, lower: str | None, upper: str | None) -> bool:
    return (lower is None or lower <= path) and (upper is None or path < upper)


def _file(row: EntryRow, file_hash: bytes | None = None) -> TreeNode:
    path, tag, size, chunks = row
    digest = ids.file_hash((chunks or b"",)) if file_hash is None else file_hash
    return TreeNode(path, False, size, digest, tag, unpacked(size, chunks or b""))


def _directory(path: str, size: int, digest: bytes) -> TreeNode:
    return TreeNode(path, True, size, digest, "", None)


def tar(nodes: Iterable[TreeNode], chunks: ChunkStore) -> Iterator[bytes]:
    """A tar archive in pieces of at most 1 MiB, as the real server writes it.

    Names are absolute paths, directories end in a slash and have no content; mode, owner and time are 0. Long names and
    sizes use pax headers. Raises DataLoss if a file is damaged.
    """
    for node in nodes:
        entry = tarfile.TarInfo(node.path)
        entry.mode = 0
        entry.type = tarfile.DIRTYPE if node.is_dir else tarfile.REGTYPE
        entry.size = 0 if node.is_dir else node.size
        yield entry.tobuf(tarfile.PAX_FORMAT)
        if node.content is not None:
            yield from chunks.read(node.content, name=node.path)
            if node.size % tarfile.BLOCKSIZE:
                yield bytes(tarfile.BLOCKSIZE - node.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)
