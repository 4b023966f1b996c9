"""Writing files: one stream of additions, removals and copies, applied to a commit as one step."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from localpachd import ids
from localpachd.errors import NotFound, PachError
from localpachd.pfs import commits, contents, lookup
from localpachd.pfs.service import Pfs
from localpachd.pfs.transaction import Transaction
from localpachd.pfs.values import Branch, Commit, CommitInfo
from localpachd.storage import paths, trees
from localpachd.storage.chunks import Chunks
from localpachd.storage.filesets import Content, FileSet

DEFAULT_TAG = "default"


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
    """A file or directory to copy from a readable commit, over or behind what is there."""

    source: Commit
    source_path: str
    path: str
    tag: str
    append: bool


Change = Addition | Removal | Copy


def modify(pfs: Pfs, target: Commit, changes: Sequence[Change]) -> None:
    """Applies changes in order and all at once: to the open commit that `target` names, or, where it names a branch
    without one, to a commit of their own, which is finished with them."""
    pfs.chunks.flush()
    pfs.transact(lambda txn: _apply(txn, pfs.chunks, target, changes))


def _apply(txn: Transaction, chunks: Chunks, target: Commit, changes: Sequence[Change]) -> None:
    commit, own = _open(txn, target)
    contents.add_layer(txn, commit, _Staged(txn, chunks, commit, changes).entries())
    if own:
        commits.finish(txn, commit.commit)


def _open(txn: Transaction, target: Commit) -> tuple[CommitInfo, bool]:
    """The open commit to write into, and whether it was opened for this."""
    named = ids.is_id(target.id)
    branch = target.branch or ("" if named else target.id)
    try:
        info = commits.resolve(txn.conn, target)
    except NotFound:
        if not branch:
            raise
        lookup.repo_id(txn.conn, target.repo)
        return _one_off(txn, Branch(target.repo, branch)), True
    if info.finishing is None:
        return info, False
    if named:
        raise PachError(f"commit {info.commit} has already finished")
    return _one_off(txn, Branch(target.repo, branch)), True


def _one_off(txn: Transaction, branch: Branch) -> CommitInfo:
    return commits.resolve(txn.conn, commits.start(txn, branch))


class _Staged:
    """The changes of one stream as the entries of one layer."""

    def __init__(self, txn: Transaction, chunks: Chunks, commit: CommitInfo, changes: Iterable[Change]) -> None:
        self._txn = txn
        self._chunks = chunks
        self._before = contents.fileset(txn.conn, commit)
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
        source = self._source(change)
        root = trees.inspect(source, change.source_path)
        if root is None:
            info = commits.resolve(self._txn.conn, change.source)
            raise NotFound(f"file {change.source_path} not found in repo {info.commit.repo} at commit {info.commit.id}")
        stem = root.path.rstrip("/")
        files = list(source.walk(root.path)) if root.is_dir else source.get(root.path)
        for file in files:
            path = paths.clean(change.path + file.path[len(stem) :])
            if not change.append:
                self._remove(path, change.tag)
            self._add(path, change.tag, file.content)

    def _source(self, change: Copy) -> FileSet:
        return contents.fileset(self._txn.conn, commits.resolve(self._txn.conn, change.source))
