"""Files fetched from a server and kept on this machine by the hash of their content. Knows no server."""

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

KEPT_BYTES = 4 << 30
"""Most bytes of files that are kept; those that were not used for the longest time go first."""

_SCRATCH = "ask-"
_LEFT_AFTER = 7 * 86400.0
"""Seconds after which a scratch directory belongs to a process that was killed: no question takes as long."""


class FileCache:
    """Fetched files below a directory of this machine, by hash, at most `most` bytes of them, and a scratch directory
    on the same disk."""

    def __init__(self, directory: Path, most: int = KEPT_BYTES) -> None:
        self._kept = directory / "files"
        self.most = most
        self._directory = directory

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A directory that is deleted in the end; those that killed processes have left are deleted now. If its disk
        is full, the OSError names the cache."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for left in self._directory.glob(f"{_SCRATCH}*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _LEFT_AFTER:
                    shutil.rmtree(left)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=self._directory) as scratch:
            try:
                yield Path(scratch)
            except OSError as error:
                if error.errno == errno.ENOSPC and error.filename is None:
                    error.filename = str(self._directory)
                raise

    @property
    def free(self) -> int:
        """The free bytes of its disk."""
        self._directory.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self._directory).free

    def kept(self, hash: str, size: int) -> bool:
        """Whether content of this hash and size is kept now."""
        try:
            return self._path(hash).stat().st_size == size
        except OSError:
            return False

    def place(self, hash: str, size: int | None, at: Path, fetch: Callable[[Path], None]) -> bool:
        """Makes a file appear at a path of the scratch directory: a kept one, or else the one that `fetch` writes to
        that path. hash, size: of its content; None for a size that is known only once the file is there. Returns
        whether it was kept."""
        at.parent.mkdir(parents=True, exist_ok=True)
        kept = self._path(hash)
        try:
            if size is None or kept.stat().st_size == size:
                os.utime(kept)
                os.link(kept, at)
                return True
        except OSError:  # not kept, or a disk without links
            pass
        fetch(at)
        with contextlib.suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.unlink(missing_ok=True)
            os.link(at, kept)
        return False

    def renew(self, hashes: Iterable[str]) -> None:
        """Takes these files, as far as they are kept, as used now, one after the other."""
        for hash in hashes:
            with contextlib.suppress(OSError):
                os.utime(self._path(hash))

    def drop(self, hashes: Iterable[str]) -> None:
        """Deletes these files, as far as they are kept."""
        for hash in hashes:
            with contextlib.suppress(OSError):
                self._path(hash).unlink(missing_ok=True)

    def _path(self, hash: str) -> Path:
        return self._kept / hash[:2] / hash

    def trim(self) -> None:
        """Deletes what was not used for the longest time, until no more than `most` bytes are left."""
        found: list[tuple[float, int, Path]] = []
        for path in self._kept.glob("*/*"):
            with contextlib.suppress(OSError):
                state = path.stat()
                found.append((state.st_mtime, state.st_size, path))
        excess = sum(size for _, size, _ in found) - self.most
        for _, size, path in sorted(found):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size


def default_place() -> Path:
    """The directory of files that are kept for this user."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lookalike" / "trees"
