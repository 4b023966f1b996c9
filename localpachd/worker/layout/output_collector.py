"""The output of user code in `/pfs/out`: its files stored as content, its links followed by Pachyderm's rules.

Knows the directories of one datum and the chunk store; starts nothing and deletes nothing.
"""

import errno
import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from localpachd.errors import PachError
from localpachd.ids import CHUNK_SIZE
from localpachd.storage import paths
from localpachd.storage.chunk_splitter import HOLE
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileContent
from localpachd.worker.layout.pfs_layout import OUT, DatumPlacement, PfsLayout
from localpachd.worker.layout.visible_files import LinkedFiles, VisibleFiles
from localpachd.worker.tasks import OutputFile

_BLOCK = 1 << 20


class OutputError(Exception):
    """The contents of `/pfs/out` cannot be kept; the text is the reason."""


@dataclass(frozen=True, slots=True)
class FoundOutput:
    """A file of the output: its path there, its place on this machine, its bytes and the number of its names, its
    content if that is in the store already, and whether a link led to it."""

    path: str
    place: str
    size: int
    names: int
    content: FileContent | None
    linked: bool = False


class OutputCollector:
    """The collector of one datum's output. `check` is called often and may raise to stop it."""

    def __init__(
        self,
        layout: PfsLayout,
        placed: DatumPlacement,
        chunks: ChunkStore,
        linked_files: LinkedFiles,
        check: Callable[[], None],
    ) -> None:
        self._layout = layout
        self._placed = placed
        self._inside_tree = f"{placed.tree}/"
        self._chunks = chunks
        self._check = check
        self._seen = VisibleFiles(layout.pfs, layout.shown, linked_files)

    def find(self) -> tuple[FoundOutput, ...]:
        """Every file below `out`, in path order, and nothing of it read. Raises OutputError."""
        if self._layout.replaced_out(self._placed):
            raise OutputError("/pfs/out was replaced by something else, and its files with it: write into it instead")
        return _ordered(self._files(lenient=False))

    def store(self, found: Iterable[FoundOutput], tree: Path) -> tuple[OutputFile, ...]:
        """The same files, their bytes stored but not flushed. `tree` is the datum's directory, which may have moved.
        Raises OutputError."""
        return tuple(self._stored(each, tree) for each in found)

    def salvage(self) -> tuple[OutputFile, ...]:
        """All of a failed attempt's output that can be kept, for people to look at."""
        kept = []
        for each in _ordered(self._files(lenient=True)):
            with suppress(OutputError):
                kept.append(self._stored(each, self._placed.tree))
        return tuple(kept)

    def own(self, found: Iterable[FoundOutput]) -> bool:
        """Whether all bytes of these files are in the datum's directory, and have no other name."""
        return all(
            each.content is not None or (each.names == 1 and each.place.startswith(self._inside_tree)) for each in found
        )

    def _stored(self, each: FoundOutput, tree: Path) -> OutputFile:
        if each.content is not None:
            return OutputFile(each.path, each.content, each.linked)
        place = each.place
        if place.startswith(self._inside_tree):
            place = f"{tree}/{place.removeprefix(self._inside_tree)}"
        try:
            return OutputFile(each.path, self._chunks.store(self._read(place)), each.linked)
        except OSError as failure:
            raise OutputError(f"cannot upload /pfs/out{_printable(each.path)}: {_said(failure)}") from failure

    def _files(self, lenient: bool) -> Iterator[FoundOutput]:
        waiting = [(f"{self._inside_tree}{OUT}", "")]
        while waiting:
            directory, below = waiting.pop()
            try:
                with os.scandir(directory) as found:
                    entries = list(found)
            except OSError as failure:
                if lenient:
                    continue
                raise OutputError(f"cannot read /pfs/out{_printable(below)}: {failure.strerror}") from failure
            for entry in entries:
                self._check()
                path = f"{below}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, path))
                    continue
                try:
                    yield from self._entry(entry.path, path, entry.is_symlink())
                except OutputError:
                    if not lenient:
                        raise

    def _entry(self, place: str, path: str, link: bool) -> Iterator[FoundOutput]:
        try:
            if link:
                yield from (replace(each, linked=True) for each in self._link(place, path))
            else:
                yield from self._kept(place, path)
        except OSError as failure:
            raise OutputError(f"cannot upload /pfs/out{_printable(path)}: {_said(failure)}") from failure

    def _kept(self, place: str, path: str, reference: FileContent | None = None) -> Iterator[FoundOutput]:
        """One file under its name in the output repo; nothing for a named pipe, which is never kept."""
        state = os.lstat(place)
        if reference is None and stat.S_ISFIFO(state.st_mode):
            return
        if reference is None and not stat.S_ISREG(state.st_mode):
            raise OutputError(f"cannot upload /pfs/out{_printable(path)}: neither a file nor a directory")
        try:
            paths.validate(path)
        except PachError as refusal:
            raise OutputError(
                "cannot upload file produced by the user code because its name cannot be represented in PFS: "
                + _printable(str(refusal))
            ) from refusal
        yield FoundOutput(path, place, state.st_size, state.st_nlink, reference)

    def _read(self, place: str) -> Iterator[bytes]:
        with open(place, "rb", buffering=0) as file:  # noqa: PTH123 (this runs for each of thousands of files)
            position = 0
            while True:
                for _ in range(0 if position % CHUNK_SIZE else _skip_hole(file.fileno(), position)):
                    self._check()
                    position += CHUNK_SIZE
                    yield HOLE
                block = file.read(_BLOCK)
                if not block:
                    return
                self._check()
                position += len(block)
                yield block

    def _link(self, place: str, path: str) -> Iterator[FoundOutput]:
        raw = posixpath.join(posixpath.dirname(self._seen.path(place)), os.readlink(place))  # noqa: PTH115 (as above)
        direct = posixpath.normpath(raw)
        try:
            target = self._seen.resolve(raw)
        except OSError as failure:
            raise OSError(failure.errno, failure.strerror, direct) from failure
        for each in (direct, target):
            self._refuse_own(path, each)
        found = self._seen.here(target)
        if not stat.S_ISDIR(os.lstat(found).st_mode):
            yield from self._kept(found, path, self._reference(found))
            return
        for directory, subdirectories, names in os.walk(found, onerror=_complain):
            for name in (*names, *subdirectories):
                self._check()
                below = Path(directory, name)
                if below.is_dir() and not below.is_symlink():
                    continue
                relative = below.relative_to(found).as_posix()
                yield from self._kept(*self._inside(below, posixpath.join(target, relative), f"{path}/{relative}"))

    def _inside(self, place: Path, shown: str, path: str) -> tuple[str, str, FileContent | None]:
        """A file within a linked directory; if that is a link itself, the file that it leads to."""
        if place.is_symlink():
            place = Path(self._seen.here(self._seen.resolve(shown)))
            if place.is_dir():
                raise OutputError(
                    f"cannot upload /pfs/out{_printable(path)}: a link to a directory within a linked one"
                )
        return str(place), path, self._reference(str(place))

    def _refuse_own(self, path: str, target: str) -> None:
        """Refuses a link to a path of this datum that is not an input, with Pachyderm's text."""
        if self._layout.shared(target):  # on a cluster temporary files lie outside of /pfs
            return
        for root in (self._placed.shown, self._layout.shown):
            if target == root or target.startswith(f"{root}/"):
                name = target[len(root) :].strip("/").split("/")[0]
                if name in self._placed.inputs:
                    return
                raise OutputError(
                    f'could not find input "{_printable(name)}": /pfs/out{_printable(path)} is a link to'
                    f" {_printable(target)}, and only links to inputs or out of /pfs can be uploaded; copy the file"
                )

    def _reference(self, place: str) -> FileContent | None:
        """The content that a placeholder of a lazy or empty input stands for; None for any other file."""
        if not place.startswith(self._inside_tree):
            return None
        return self._placed.references.get(place.removeprefix(self._inside_tree))


def _skip_hole(file: int, position: int) -> int:
    """Moves an open file from the beginning of a chunk to that of the next one in which something was written; returns
    the number of the chunks between."""
    state = os.fstat(file)
    if state.st_blocks << 9 >= state.st_size:
        return 0
    try:
        data = os.lseek(file, position, os.SEEK_DATA)
    except OSError as failure:  # nothing was written from there on, or this file system does not know
        data = state.st_size if failure.errno == errno.ENXIO else position
    chunks = max(0, data - position) // CHUNK_SIZE
    os.lseek(file, position + chunks * CHUNK_SIZE, os.SEEK_SET)
    return chunks


def _complain(failure: OSError) -> None:
    raise failure


def _ordered(files: Iterator[FoundOutput]) -> tuple[FoundOutput, ...]:
    return tuple(sorted(files, key=lambda file: file.path))


def _said(failure: OSError) -> str:
    return f"{failure.strerror}: {_printable(os.fsdecode(failure.filename))}" if failure.filename else str(failure)


def _printable(text: str) -> str:
    """Text that any log or message can carry, whatever bytes a file name consists of."""
    return text.encode(errors="backslashreplace").decode()
