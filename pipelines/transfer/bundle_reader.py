"""Reading the tar of an exported library: each member once, in order, checked against its hash. Knows no server."""

import hashlib
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BufferedIOBase
from typing import NoReturn, TypeVar

from pipelines.errors import LookalikeError
from pipelines.transfer import bundle
from pipelines.transfer.bundle import BundleCommit, CommitList, CommitRemovals, PipelineOutput
from stages.decode.tar_streams import PIECE, ChunkReader, content, members, open_archive

T = TypeVar("T")

_MOST_TEXT = 1 << 30
"""Bytes of a member of text; a longer one is not ours."""


class DamagedBundleError(LookalikeError):
    """The tar ends early, or is not as it was written."""


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file of a commit, whose content must be read before the next file is taken."""

    path: str
    content: Iterable[bytes]


@dataclass(frozen=True, slots=True)
class BundleLink:
    """A file of a commit with the content of a file of an earlier commit, given by repo, id and path."""

    path: str
    repo: str
    commit: str
    source: str


class BundleReader:
    """The members of a tar, from a file or, if it cannot seek, from a stream. `name` is for messages.

    Call `library` first, then `removed` and `files` or else `skip` for each commit in order, then `outputs`. All raise
    Damaged, and LookalikeError for a tar of another kind.
    """

    def __init__(self, file: BufferedIOBase, name: str) -> None:
        self.name = name
        self.sums: dict[str, str] = {}
        """The sha256 of every member of finished commits, by name."""
        self._open: dict[str, str] = {}
        self._place = "its list of commits"
        try:
            self._archive = open_archive(file if file.seekable() else ChunkReader(iter(lambda: file.read1(PIECE), b"")))
        except tarfile.TarError as error:
            raise self._foreign() from error
        self._members = members(self._archive)

    @property
    def offset(self) -> int:
        """The place of the next member in the file."""
        return self._archive.offset

    def library(self) -> tuple[BundleCommit, ...]:
        """The commits that follow."""
        member = self._next()
        if member.name != bundle.LIBRARY + bundle.FACTS:
            raise self._foreign()
        text = self._text(member)
        if self._parsed(member, text, bundle.format_of) != bundle.FORMAT:
            raise LookalikeError(f"{self.name} is of another version of lookalike: import it with that version")
        self._finish(self._expect(bundle.LIBRARY + bundle.SUMS))
        return self._parsed(member, text, partial(bundle.parse, CommitList)).commits

    def removed(self, commit: BundleCommit) -> tuple[str, ...]:
        """The files that a commit removed. They are checked with the others, at the end of `files`."""
        self._place = str(commit)
        member = self._expect(commit.name + bundle.FACTS)
        return self._parsed(member, self._text(member), partial(bundle.parse, CommitRemovals)).removed

    def files(self, commit: BundleCommit) -> Iterator[BundleFile | BundleLink]:
        """The files that a commit wrote. Raises Damaged at the end unless the whole commit is as it was written."""
        while (member := self._next()).name != commit.name + bundle.SUMS:
            path = member.name.removeprefix(commit.name)
            if path == member.name:
                self._damaged(member.name)
            if member.islnk():
                self._open[member.name] = self.sums.get(member.linkname, "")
                yield BundleLink(path, *self._source(member))
            else:
                yield BundleFile(path, self._pieces(member))
        self._finish(member)

    def skip(self, commit: BundleCommit) -> None:
        """Passes over a commit without checking its files."""
        self._place = str(commit)
        while (member := self._next()).name != commit.name + bundle.SUMS:
            pass
        self.sums |= self._parsed(member, self._text(member), bundle.sums)
        self._open = {}

    def outputs(self) -> tuple[PipelineOutput, ...]:
        """The pipelines' outputs, upstream first. Ends the reading."""
        self._place = "its hashes of the outputs"
        found = []
        while (member := self._next()).name != bundle.OUTPUTS + bundle.SUMS:
            found.append(self._parsed(member, self._text(member), partial(bundle.parse, PipelineOutput)))
        self._finish(member)
        return tuple(found)

    def _next(self) -> tarfile.TarInfo:
        try:
            member = next(self._members, None)
        except tarfile.TarError as error:
            raise self._cut() from error
        if member is None or not (member.isreg() or member.islnk()):
            raise self._cut()
        return member

    def _expect(self, name: str) -> tarfile.TarInfo:
        member = self._next()
        if member.name != name:
            self._damaged(member.name)
        return member

    def _pieces(self, member: tarfile.TarInfo) -> Iterator[bytes]:
        digest = hashlib.sha256()
        try:
            for piece in content(self._archive, member):
                digest.update(piece)
                yield piece
        except tarfile.TarError as error:
            raise self._cut() from error
        self._open[member.name] = digest.hexdigest()

    def _text(self, member: tarfile.TarInfo) -> bytes:
        if member.size > _MOST_TEXT:
            self._damaged(member.name)
        return b"".join(self._pieces(member))

    def _parsed(self, member: tarfile.TarInfo, text: bytes, parse: Callable[[bytes], T]) -> T:
        try:
            return parse(text)
        except (KeyError, TypeError, ValueError):
            self._damaged(member.name)

    def _finish(self, member: tarfile.TarInfo) -> None:
        """Compares the hashes in a member with those of the members before it."""
        found, self._open = self._open, {}
        wanted = self._parsed(member, self._text(member), bundle.sums)
        self._open = {}
        for name in sorted(found.keys() | wanted.keys()):
            if found.get(name) != wanted.get(name):
                self._damaged(name)
        self.sums |= wanted

    def _source(self, member: tarfile.TarInfo) -> tuple[str, str, str]:
        """The repo, the commit and the path of the file to which a link leads."""
        parts = member.linkname.split("/", 2)
        if len(parts) != 3 or member.linkname not in self.sums:
            self._damaged(member.name)
        return parts[0], parts[1], "/" + parts[2]

    def _foreign(self) -> LookalikeError:
        return LookalikeError(f"{self.name} is not an exported library: `lookalike export` writes one")

    def _cut(self) -> DamagedBundleError:
        return DamagedBundleError(f"{self.name} ends early or is damaged in {self._place}")

    def _damaged(self, member: str) -> NoReturn:
        raise DamagedBundleError(f"{self.name} is damaged in {self._place}: {member} is not as it was exported")
