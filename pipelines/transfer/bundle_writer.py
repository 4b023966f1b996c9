"""Writing the tar of an exported library as a stream: each member once, in order, hashed on its way. Knows no server.

tarfile would keep an object for every member that it wrote.
"""

import hashlib
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from pipelines.transfer import bundle
from pipelines.transfer.bundle import BundleCommit, CommitList, CommitRemovals, PipelineOutput


class BundleWriter:
    """`write` takes all of the bytes that it is given. Members of a commit have its time, the rest 1970's beginning."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._time = 0
        self._sums: dict[str, str] = {}

    def library(self, commits: Sequence[BundleCommit]) -> None:
        """The list of the commits that follow."""
        self._text(bundle.LIBRARY + bundle.FACTS, bundle.text(CommitList(bundle.FORMAT, tuple(commits))))
        self.seal(bundle.LIBRARY)

    def begin(self, commit: BundleCommit, removed: Sequence[str]) -> None:
        """The beginning of a commit and the files that it removed."""
        self._time = int(datetime.fromisoformat(commit.started).timestamp())
        self._text(commit.name + bundle.FACTS, bundle.text(CommitRemovals(tuple(removed))))

    def file(self, name: str, size: int, content: Iterable[bytes], done: Callable[[int], None]) -> None:
        """A member of `size` bytes. `done` hears of the bytes written."""
        self._head(name, size)
        digest = hashlib.sha256()
        for piece in content:
            digest.update(piece)
            self._write(piece)
            done(len(piece))
        self._pad(size)
        self._sums[name] = digest.hexdigest()

    def link(self, name: str, target: str, sha256: str) -> None:
        """A member with the content of an earlier one."""
        self._head(name, 0, target)
        self._sums[name] = sha256

    def seal(self, name: str) -> Mapping[str, str]:
        """The member *.sha256 over all members since the last one; returns their hashes by name."""
        sums, self._sums = self._sums, {}
        self._text(name + bundle.SUMS, bundle.sums_text(sums))
        self._sums = {}
        self._time = 0
        return sums

    def output(self, output: PipelineOutput) -> None:
        """A pipeline's output."""
        self._text(output.name + bundle.FACTS, bundle.text(output))

    def end(self) -> None:
        """The end of the tar."""
        self.seal(bundle.OUTPUTS)
        self._write(bytes(2 * tarfile.BLOCKSIZE))

    def _text(self, name: str, content: bytes) -> None:
        self.file(name, len(content), [content] if content else [], lambda more: None)

    def _head(self, name: str, size: int, target: str = "") -> None:
        head = tarfile.TarInfo(name)
        head.size, head.mtime = size, self._time
        if target:
            head.type, head.linkname = tarfile.LNKTYPE, target
        self._write(head.tobuf(tarfile.PAX_FORMAT))

    def _pad(self, size: int) -> None:
        if size % tarfile.BLOCKSIZE:
            self._write(bytes(tarfile.BLOCKSIZE - size % tarfile.BLOCKSIZE))
