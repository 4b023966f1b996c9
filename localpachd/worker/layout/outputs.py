"""The output of user code in `/pfs/out`: its files stored as content, its links followed by Pachyderm's rules.

Knows the directories of one datum and the chunk store; starts nothing and deletes nothing.
"""

import errno
import os
import posixpath
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from localpachd.errors import PachError
from localpachd.storage import paths
from localpachd.storage.chunks import Chunks
from localpachd.storage.filesets import Content
from localpachd.worker.layout.links import LinkedFiles
from localpachd.worker.layout.placing import OUT, Layout, Placed
from localpachd.worker.tasks import OutputFile

_BLOCK = 1 << 20
_MOST_LINKS = 40  # as Linux


class OutputError(Exception):
    """The contents of `/pfs/out` cannot be kept; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """The collector of one datum's output. `check` is called often and may raise to stop it."""

    layout: Layout
    placed: Placed
    chunks: Chunks
    linked_files: LinkedFiles
    check: Callable[[], None]

    def collect(self) -> tuple[OutputFile, ...]:
        """Every file below `out`, in path order, its bytes stored but not flushed. Raises OutputError."""
        if self.layout.replaced_out(self.placed):
            raise OutputError("/pfs/out was replaced by something else, and its files with it: write into it instead")
        return _ordered(self._files(lenient=False))

    def salvage(self) -> tuple[OutputFile, ...]:
        """All of a failed attempt's output that can be kept, for people to look at."""
        return _ordered(self._files(lenient=True))

    def _files(self, lenient: bool) -> Iterator[OutputFile]:
        waiting = [(self.placed.tree / OUT, "")]
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
                self.check()
                path = f"{below}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((Path(entry.path), path))
                    continue
                try:
                    yield from self._entry(Path(entry.path), path, entry.is_symlink())
                except OutputError:
                    if not lenient:
                        raise

    def _entry(self, place: Path, path: str, link: bool) -> Iterator[OutputFile]:
        try:
            if link:
                yield from self._link(place, path)
            else:
                yield from self._kept(place, path)
        except OSError as failure:
            raise OutputError(f"cannot upload /pfs/out{_printable(path)}: {_said(failure)}") from failure

    def _kept(self, place: Path, path: str, reference: Content | None = None) -> Iterator[OutputFile]:
        """One file under its name in the output repo; nothing for a named pipe, which is never kept."""
        mode = place.lstat().st_mode
        if reference is None and stat.S_ISFIFO(mode):
            return
        if reference is None and not stat.S_ISREG(mode):
            raise OutputError(f"cannot upload /pfs/out{_printable(path)}: neither a file nor a directory")
        try:
            paths.validate(path)
        except PachError as refusal:
            raise OutputError(
                "cannot upload file produced by the user code because its name cannot be represented in PFS: "
                + _printable(str(refusal))
            ) from refusal
        yield OutputFile(path, self.chunks.store(self._read(place)) if reference is None else reference)

    def _read(self, place: Path) -> Iterator[bytes]:
        with place.open("rb", buffering=0) as file:
            while block := file.read(_BLOCK):
                self.check()
                yield block

    def _link(self, place: Path, path: str) -> Iterator[OutputFile]:
        shown = self._shown(place)
        direct = posixpath.normpath(posixpath.join(posixpath.dirname(shown), str(place.readlink())))
        try:
            target = self._resolve(shown)
        except OSError as failure:
            raise OSError(failure.errno, failure.strerror, direct) from failure
        for each in (direct, target):
            self._refuse_own(path, each)
        found = self._here(target)
        if not found.is_dir():
            yield from self._kept(found, path, self._reference(found))
            return
        for directory, subdirectories, names in os.walk(found, onerror=_complain):
            for name in (*names, *subdirectories):
                self.check()
                below = Path(directory, name)
                if below.is_dir() and not below.is_symlink():
                    continue
                relative = below.relative_to(found).as_posix()
                yield from self._kept(*self._inside(below, posixpath.join(target, relative), f"{path}/{relative}"))

    def _inside(self, place: Path, shown: str, path: str) -> tuple[Path, str, Content | None]:
        """A file within a linked directory; if that is a link itself, the file that it leads to."""
        if place.is_symlink():
            place = self._here(self._resolve(shown))
            if place.is_dir():
                raise OutputError(
                    f"cannot upload /pfs/out{_printable(path)}: a link to a directory within a linked one"
                )
        return place, path, self._reference(place)

    def _refuse_own(self, path: str, target: str) -> None:
        """Refuses a link to a path of this datum that is not an input, with Pachyderm's text."""
        if self.layout.shared(target):  # on a cluster temporary files lie outside of /pfs
            return
        for root in (self.placed.shown, self.layout.shown):
            if target == root or target.startswith(f"{root}/"):
                name = target[len(root) :].strip("/").split("/")[0]
                if name in self.placed.inputs:
                    return
                raise OutputError(
                    f'could not find input "{_printable(name)}": /pfs/out{_printable(path)} is a link to'
                    f" {_printable(target)}, and only links to inputs or out of /pfs can be uploaded; copy the file"
                )

    def _reference(self, place: Path) -> Content | None:
        """The content that a placeholder of a lazy or empty input stands for; None for any other file."""
        if not place.is_relative_to(self.placed.tree):
            return None
        return self.placed.references.get(place.relative_to(self.placed.tree).as_posix())

    def _resolve(self, shown: str) -> str:
        """The path without links that a path leads to, both as user code sees them. Raises OSError."""
        current, rest, links = "/", shown.split("/")[::-1], 0
        while rest:
            name = rest.pop()
            if name in ("", "."):
                continue
            if name == "..":
                current = posixpath.dirname(current)
                continue
            step = posixpath.join(current, name)
            here = self._in_pfs(step)
            if not stat.S_ISLNK(self.linked_files.mode(step) if here is None else here.lstat().st_mode):
                current = step
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), shown)
            target = self.linked_files.target(step) if here is None else str(here.readlink())
            rest += target.split("/")[::-1]
            if target.startswith("/"):
                current = "/"
        return current

    def _shown(self, place: Path) -> str:
        """The path of a file in `/pfs` as user code sees it, from its path on this machine."""
        return posixpath.join(self.layout.shown, place.relative_to(self.layout.pfs).as_posix())

    def _in_pfs(self, shown: str) -> Path | None:
        """The path on this machine of a file in `/pfs`, from its absolute path as user code sees it; None for a path
        outside of `/pfs`."""
        root = self.layout.shown
        if shown == root or shown.startswith(f"{root}/"):
            return self.layout.pfs / shown[len(root) :].lstrip("/")
        return None

    def _here(self, shown: str) -> Path:
        """The path where this machine can read a file, from its absolute path without links as user code sees it."""
        return self._in_pfs(shown) or self.linked_files.fetch(shown)


def _complain(failure: OSError) -> None:
    raise failure


def _ordered(files: Iterator[OutputFile]) -> tuple[OutputFile, ...]:
    return tuple(sorted(files, key=lambda file: file.path))


def _said(failure: OSError) -> str:
    return f"{failure.strerror}: {_printable(os.fsdecode(failure.filename))}" if failure.filename else str(failure)


def _printable(text: str) -> str:
    """Text that any log or message can carry, whatever bytes a file name consists of."""
    return text.encode(errors="backslashreplace").decode()
