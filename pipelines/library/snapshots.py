"""The library at one commit: its pictures by true name, and where each of them is.

A picture is a top-level file of its own, in a block, or in a directory that was put by other means. Blocks never
change: a picture that was removed or replaced stays in its block, and the block's mask hides it. This module is the one
that knows which pictures of blocks are there.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from functools import cached_property
from pathlib import Path

from pipelines.client.commit_history import CommitHistory
from pipelines.client.commit_sets import inspect_commit
from pipelines.client.commit_writer import CommitWriter
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.stored_file import StoredFile
from pipelines.errors import LookalikeError
from pipelines.library.block_store import BlockDownloads
from stages.datum.contract import StageError, load
from stages.files import blocks
from stages.files.blocks import ByteRange
from stages.record import block_names, masks, picture_containers, url_records
from stages.record.file_kinds import HEAD
from stages.record.pfs_names import is_block, unescape
from stages.record.url_records import OtherBytesError, UrlRecord

REPO = "images"

FETCHED = "fetch"
"""The pipeline whose blocks are pictures of the library, too: those of buckets, as the last listing had them."""

_MOST_ASKED = 100
"""Files that are asked for one by one: for more, all are listed."""


class OriginalError(LookalikeError):
    """A picture that stays at its URL cannot be had from there now."""


class LibrarySnapshot:
    """`images` at a commit; empty for the id "". hiding: the commit of `masks` that belongs to it, by default the one
    that it was made or computed with. With the blocks of `fetch`, if that pipeline is deployed: the newest ones with
    the newest commit, those of then with an older one."""

    def __init__(
        self, connection: Connection, commit: str, downloads: BlockDownloads, hiding: str | None = None
    ) -> None:
        self._repo = Repository(connection, REPO, commit)
        self.commit = commit
        self._downloads = downloads
        self._found: dict[str, StoredFile | None] = {}
        fetched = fetch_commit(connection, commit)
        self._fetched_repo = Repository(connection, FETCHED, fetched)
        self.fetched = _blocks(self._fetched_repo) if fetched else {}
        """The hashes of the blocks of `fetch`, which nobody else writes, by PFS name."""
        self.blocks = (_blocks(self._repo) if commit else {}) | self.fetched
        """The hashes of all blocks by PFS name."""
        self._fetch: Callable[[UrlRecord], bytes] | None = None
        self.masks = read_masks(connection, mask_commit(connection, commit) if hiding is None else hiding)
        """The true names that are hidden, by the path of the mask."""

    @cached_property
    def entries(self) -> dict[str, bytes]:
        """The hashes of top-level files and directories, see Repository.entries. A library of many pictures that are
        files of their own has as many."""
        return self._repo.entries() if self.commit else {}

    def repository(self, path: str) -> Repository:
        """The repo that a file or a block is in."""
        return self._fetched_repo if path.strip("/") in self.fetched else self._repo

    def hidden(self, block: str) -> frozenset[str]:
        """The true names of the pictures of a block that are not in the library any more."""
        return self.masks.get(masks.path(block), frozenset())

    def hashes(self, block: str) -> dict[str, str]:
        """The SHA-256 of the pictures of a block by true name, of hidden ones, too."""
        return self._downloads.hashes(self.repository(block), {block: self.blocks[block]})[block]

    def names_in(self, block: str) -> dict[str, str]:
        """The same of the pictures that are in the library."""
        hidden = self.hidden(block)
        return {name: sha256 for name, sha256 in self.hashes(block).items() if name not in hidden}

    def pictures(self, block: str) -> dict[str, ByteRange]:
        """The bytes of the pictures of a block that are in the library, which is downloaded."""
        hidden = self.hidden(block)
        found = self._downloads.pictures(self.repository(block), block, self.blocks[block])
        return {name: span for name, span in found.items() if name not in hidden}

    def records(self, block: str) -> dict[str, UrlRecord]:
        """The records of a block of pictures that stay at their URLs, of those in the library; none of other blocks."""
        if not url_records.is_file(block):
            return {}
        hidden = self.hidden(block)
        records = url_records.parse_records(self._repo.read(f"/{block}"))
        return {each.path: each for each in records if each.path not in hidden}

    def at_urls(self) -> set[str]:
        """The true names of the pictures of the library that stay at their URLs."""
        return set().union(*(self.names_in(block) for block in self.blocks if url_records.is_file(block)))

    def original(self, block: str, name: str) -> Iterator[bytes]:
        """The bytes of a picture of a block, from its URL if it stays there. Raises OriginalError if they cannot be
        had now, or other ones are there."""
        record = self.records(block).get(name)
        if record is None:
            return blocks.content(self.pictures(block)[name])
        if self._fetch is None:
            self._fetch = load("stages.files.remote_files").originals(os.environ)  # few libraries need obstore
        try:
            return iter([self._fetch(record)])
        except (StageError, OtherBytesError) as error:
            raise OriginalError(str(error)) from error

    def forget(self, block: str) -> None:
        """Deletes the downloaded pictures of a block."""
        self._downloads.forget(self.blocks.get(block))

    def holders(self, name: str) -> list[str]:
        """The blocks that hold a picture of this true name, also those that hide it."""
        earlier = block_names.home(name, self._earlier)
        found = [earlier] if earlier is not None and name in self.hashes(earlier) else []
        return [*self._listed.get(name, ()), *found]

    def home(self, name: str) -> str | None:
        """The block that has a picture of the library, if one does."""
        return next((block for block in self.holders(name) if name not in self.hidden(block)), None)

    def by_block(self, names: Iterable[str]) -> dict[str, list[str]]:
        """The names by the block that has their pictures, "" for none."""
        found: dict[str, list[str]] = {}
        for name in names:
            found.setdefault(self.home(name) or "", []).append(name)
        return found

    def holds(self, name: str) -> bool:
        """Whether there is a picture of this true name."""
        return self.home(name) is not None or bool(self.files(name))

    def files(self, name: str) -> list[str]:
        """The files outside blocks that a picture of this true name is, at most two."""
        return [path for path in picture_containers.paths_of(name) if self._is_file(path)]

    def hash_of(self, path: str) -> bytes | None:
        """The hash of a file outside blocks."""
        return self.entries.get(path[1:]) or self._repo.hashes(path).get(path)

    def names(self) -> set[str]:
        """The true name of every picture."""
        found: set[str] = set()
        for block in self.blocks:
            found.update(self.names_in(block))
        for entry in self.entries.keys() - self.blocks.keys():
            if entry.endswith("/"):
                found.update(unescape(path.strip("/")) for path in self._repo.files_in(f"/{entry}"))
            else:
                found.add(unescape(entry))
        return found

    def outside_blocks(self, folder: str) -> Iterator[tuple[str, str, bytes]]:
        """The true name, the path and the hash of every picture below a folder that is in no block."""
        for entry, content in self.entries.items():
            if entry in self.blocks:
                continue
            found = self._repo.hashes(f"/{entry}") if entry.endswith("/") else {f"/{entry}": content}
            for path, each in found.items():
                name = unescape(path.strip("/"))
                if name.startswith(f"{folder}/"):
                    yield name, path, each

    def content(self, path: str) -> Iterator[bytes]:
        """The bytes of a file, piece by piece."""
        return self._repo.pieces(path)

    def head(self, entry: str) -> bytes:
        """The first bytes of a top-level file, which tell its kind."""
        return self._repo.read(f"/{entry}", most=HEAD)

    @cached_property
    def _earlier(self) -> frozenset[str]:
        """The blocks of earlier versions, whose names alone tell which of them holds a picture."""
        return frozenset(filter(block_names.is_earlier, self.blocks))

    @cached_property
    def _listed(self) -> dict[str, list[str]]:
        """The other blocks by the true names of their pictures."""
        wanted = {block: content for block, content in self.blocks.items() if block not in self._earlier}
        found: dict[str, list[str]] = {}
        for repo, some in (
            (self._repo, wanted.keys() - self.fetched),
            (self._fetched_repo, wanted.keys() & self.fetched),
        ):
            for block, hashes in self._downloads.hashes(repo, {each: wanted[each] for each in sorted(some)}).items():
                for name in hashes:
                    found.setdefault(name, []).append(block)
        return found

    def has_directory(self, path: str) -> bool:
        """Whether a path is a directory."""
        found = self._find(path)
        return found is not None and found.is_directory

    def _find(self, path: str) -> StoredFile | None:
        if path not in self._found:
            self._found[path] = self._repo.find(path) if self.commit else None
        return self._found[path]

    def _is_file(self, path: str) -> bool:
        if "entries" not in self.__dict__ and len(self._found) < _MOST_ASKED:
            found = self._find(path)
            return found is not None and not found.is_directory
        top, _, below = path[1:].partition("/")
        return f"{top}/" in self.entries and self._repo.is_file(path) if below else top in self.entries


def _blocks(repo: Repository) -> dict[str, bytes]:
    return {each.name: bytes.fromhex(each.hash) for each in repo.glob("/%block-*") if is_block(each.path)}


def fetch_commit(connection: Connection, commit: str) -> str:
    """The commit of `fetch` that belongs to a commit of `images`, "" for none: the newest good one to the newest."""
    newest = Repository(connection, FETCHED).good()
    if newest is None or not commit or commit == CommitWriter(connection, REPO).newest():
        return "" if newest is None else newest.at
    return mask_commit(connection, commit, FETCHED)


def mask_commit(connection: Connection, commit: str, repo: str = masks.REPO) -> str:
    """The commit of `masks`, or of another repo, that belongs to a commit of `images`, "" for none: of the same commit
    set, or the one that pipelines computed that with; else the newest one at that time."""
    made = inspect_commit(connection, repo, commit) if commit else None
    if made is not None:
        return str(made.commit.id)
    library = inspect_commit(connection, REPO, commit) if commit else None
    records = CommitHistory(connection).records(repo) if library is not None else ()
    began = None if library is None else library.started.ToDatetime(tzinfo=UTC)
    return next((each.id for each in records if began is not None and each.started <= began), "")


def read_masks(connection: Connection, commit: str) -> Mapping[str, frozenset[str]]:
    """The true names that are hidden at a commit of `masks`, by the path of the mask. Raises LookalikeError for a mask
    that cannot be read."""
    found = {}
    for path, content in Repository(connection, masks.REPO, commit).read_all(masks.GLOB) if commit else ():
        try:
            found[path] = masks.parse(content)
        except ValueError as error:
            raise LookalikeError(f"{path} in {masks.REPO} is not a mask of lookalike's: remove it ({error})") from error
    return found


@contextmanager
def open_library(connection: Connection, commit: str | None = None) -> Iterator[LibrarySnapshot]:
    """The library at a commit of `images`, by default the newest, with a directory for the blocks that it downloads."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        at = CommitWriter(connection, REPO).newest() if commit is None else commit
        yield LibrarySnapshot(connection, at, BlockDownloads(Path(scratch)))


def at_urls(connection: Connection) -> set[str]:
    """The true names of the pictures of the newest library that stay at their URLs."""
    with open_library(connection) as library:
        return library.at_urls()


def own_path(name: str) -> str:
    """The path of a picture that is a file of its own."""
    return picture_containers.paths_of(name)[0]
