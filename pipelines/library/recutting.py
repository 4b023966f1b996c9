"""Blocks of the library cut again for another number of pictures, in one commit.

Pictures outside of blocks stay, and so do blocks that have the right size. The disk holds the pictures of a few new
blocks at a time.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipelines.client.commits import Commits
from pipelines.client.connection import Connection
from pipelines.client.filesets import FileSets
from pipelines.client.repository import Put, Remove, Repository
from pipelines.library import blocks
from pipelines.library.blocks import Span
from pipelines.library.selection import NothingFoundError
from pipelines.library.snapshots import REPO, Downloads, Snapshot, block_path

Report = Callable[[int], None]
"""Called with the number of pictures put since the last call."""


@dataclass(frozen=True, slots=True)
class Recut:
    """The commit, and the numbers of blocks that went and came."""

    commit: str
    gone: int
    made: int


@dataclass(frozen=True, slots=True)
class _Branch:
    """The pictures below a branch of the tree, which fit into one block, and the blocks that hold them now."""

    pictures: dict[str, Span]
    prefixes: tuple[str, ...]


def recut(connection: Connection, limit: int, report: Report = lambda _: None) -> Recut | None:
    """Cuts the blocks so that they are those that `add` would make of the same names with at most `limit` pictures in
    each. None, and no commit, if they are these already."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, FileSets(connection) as filesets:
        cutting = _Cutting(connection, filesets, Path(scratch), limit, report)
        try:
            commit = Commits(connection, REPO).make(cutting.content, f"blocks of at most {limit:,} pictures")
        except NothingFoundError:
            return None
        return Recut(commit, len(cutting.gone), len(cutting.made))


class _Cutting:
    """One cut on top of any commit; what is uploaded is used again if others write meanwhile."""

    def __init__(self, connection: Connection, filesets: FileSets, scratch: Path, limit: int, report: Report) -> None:
        self.gone: set[str] = set()
        self.made: dict[str, str] = {}
        """The file sets of new blocks, by prefix."""
        self._connection = connection
        self._repo = Repository(connection, REPO)
        self._filesets = filesets
        self._downloads = Downloads(scratch)
        self._limit = limit
        self._report = report
        self._uploaded: dict[tuple[str, tuple[bytes, ...]], str] = {}

    def content(self, parent: str) -> str:
        """The file set that replaces the blocks of a commit. Raises NothingFoundError if none is to be replaced."""
        self.gone, self.made = set(), {}
        self._library = Snapshot(self._connection, parent, self._downloads)
        whole = self._branch("", sorted(self._library.blocks))
        if whole is not None:
            self._close("", whole)
        if not self.made:
            raise NothingFoundError("the blocks have the right size: nothing was put")
        removals = [Remove(block_path(each)) for each in sorted(self.gone - self.made.keys())]
        parts = list(self.made.values())
        if removals:
            parts.append(self._filesets.make(self._repo.requests(removals)))
        return self._filesets.compose(parts)

    def _branch(self, prefix: str, below: list[str]) -> _Branch | None:
        """The branch if one block is enough for it; None if it is divided, and its blocks are made. below: the prefixes
        of its blocks, sorted."""
        if not below:
            return _Branch({}, ())
        if below == [prefix]:
            pictures = self._library.block(prefix)
            if len(pictures) <= self._limit:
                return _Branch(pictures, (prefix,))
            for each, names in blocks.divide(pictures, prefix, self._limit).items():
                self._put(each, _Branch({name: pictures[name] for name in names}, (prefix,)))
            self._let_go((prefix,))
            return None
        halves = {
            longer: self._branch(longer, [each for each in below if each.startswith(longer)])
            for longer in (f"{prefix}0", f"{prefix}1")
        }
        found = [half for half in halves.values() if half is not None]
        if len(found) == len(halves) and sum(len(half.pictures) for half in found) <= self._limit:
            one, other = found
            return _Branch(one.pictures | other.pictures, one.prefixes + other.prefixes)
        for longer, half in halves.items():
            if half is not None:
                self._close(longer, half)
        return None

    def _close(self, prefix: str, branch: _Branch) -> None:
        """Makes the block of a branch, unless it is there."""
        if branch.prefixes not in ((), (prefix,)):
            self._put(prefix, branch)
            self._let_go(branch.prefixes)
        for each in branch.prefixes:
            self._library.forget(each)

    def _put(self, prefix: str, branch: _Branch) -> None:
        key = (prefix, tuple(self._library.blocks[each] for each in branch.prefixes))
        if key not in self._uploaded:
            edit = Put(block_path(prefix), blocks.tar(branch.pictures))
            self._uploaded[key] = self._filesets.make(self._repo.requests([edit]))
            self._report(len(branch.pictures))
        self.made[prefix] = self._uploaded[key]

    def _let_go(self, prefixes: tuple[str, ...]) -> None:
        self.gone |= set(prefixes)
        for each in prefixes:
            self._library.forget(each)
