"""Files and directories that survive a power failure: syncing, and replacing a file as a whole. Knows no content.

A new, renamed or deleted name is part of its directory, which must be synced besides the file.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path

_PRIVATE = 0o600
_DATA = getattr(os, "fdatasync", os.fsync)
# Linux's sync_file_range, which Python lacks, and its flag to write without waiting.
_SYNC_FILE_RANGE = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
_WRITE = 2
_IMPOSSIBLE = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.ESPIPE)
"""Its errors where the system, or a container's filter of system calls, does not have it, or not for this file."""


def sync(path: Path) -> None:
    """Makes a file, or the names in a directory, durable. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_data(handle: int) -> None:
    """Makes the content of an open file durable, without its times. Raises OSError."""
    _DATA(handle)


def begin(handle: int) -> None:
    """Has the system begin to write an open file to the disk, where it can, so that a sync waits for less. Promises
    nothing. Raises OSError if the disk fails: the sync might not be told again."""
    if _SYNC_FILE_RANGE is None:
        return
    from_start, to_end = ctypes.c_int64(0), ctypes.c_int64(0)
    if _SYNC_FILE_RANGE(handle, from_start, to_end, _WRITE) and (error := ctypes.get_errno()) not in _IMPOSSIBLE:
        raise OSError(error, os.strerror(error))


def make_directory(path: Path, mode: int = 0o777) -> None:
    """Makes a directory and those above it, each of them durable; does nothing if it is there. `mode` is that of the
    innermost one."""
    made = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    for each in made:
        sync(each.parent)


def replace(path: Path, content: bytes) -> None:
    """Writes a file that only its owner may read, durably: after a failure it has its old content or the new one."""
    _publish(path, content, os.replace)


def create(path: Path, content: bytes) -> None:
    """As `replace`, for a file that is not there yet. Raises FileExistsError."""
    _publish(path, content, os.link)  # unlike a rename, this replaces nothing


def _publish(path: Path, content: bytes, publish: Callable[[Path, Path], None]) -> None:
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        publish(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)


def write_all(handle: int, content: bytes) -> None:
    """Writes bytes to an open file, in as many calls as that takes; durable it is not yet."""
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]
