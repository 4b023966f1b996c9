"""The removal of whatever user code has left behind: trees of any depth, without permissions, marked as immutable.

Knows no datums. What cannot be deleted keeps nothing else.
"""

import errno
import fcntl
import os
import stat
import struct
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

# Of <linux/fs.h>: the flags of a file, as chattr(1) sets them, and those that forbid its deletion.
_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
_LOCKED = 0x10 | 0x20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def remove(path: Path) -> None:
    """Deletes a file or a whole tree; ignores absence. What cannot be deleted stays, and the first reason for that is
    raised as an OSError that names its place."""
    try:
        holder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        _remove(path, holder)
    finally:
        os.close(holder)


def _remove(path: Path, holder: int) -> None:
    try:
        top = _opened(path.name, holder)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        _unlink(path.name, holder)
        return
    try:
        failure = _empty(top, path)
    finally:
        os.close(top)
    if failure is not None:
        raise failure
    try:
        os.rmdir(path.name, dir_fd=holder)
    except OSError as busy:
        raise OSError(busy.errno, busy.strerror, str(path)) from busy


def _empty(top: int, path: Path) -> OSError | None:
    """Deletes everything in the open directory `top`; returns the first failure, if there is one.

    Nothing descends into a tree: the directories within each directory are moved up beside it until there are none. So
    neither the length of a path nor the number of open files grows with the depth.
    """
    first: OSError | None = None
    stuck: set[str] = set()
    while waiting := [name for name in _names(top) if name not in stuck]:
        for name in waiting:
            try:
                _flatten(name, top)
            except FileNotFoundError:
                continue
            except OSError as failure:
                stuck.add(name)
                first = first or OSError(failure.errno, failure.strerror, str(path / name))
    return first


def _flatten(name: str, top: int) -> None:
    """Deletes an entry of the directory `top`, to which the directories within the entry are moved."""
    try:
        inner = _opened(name, top)
    except NotADirectoryError:
        _unlink(name, top)
        return
    failure: OSError | None = None
    try:
        for each in _names(inner):
            try:
                _lift(each, inner, top)
            except OSError as error:
                failure = failure or error
    finally:
        os.close(inner)
    if failure is not None:
        raise failure
    os.rmdir(name, dir_fd=top)


def _lift(name: str, inner: int, top: int) -> None:
    """Moves a directory from `inner` to `top`, and deletes anything else."""
    try:
        os.close(_opened(name, inner))  # with the permission to give it another parent
    except NotADirectoryError:
        _unlink(name, inner)
    else:
        os.rename(name, uuid4().hex, src_dir_fd=inner, dst_dir_fd=top)


def _opened(name: str, holder: int) -> int:
    """A directory, open and with every permission for us. Raises OSError, NotADirectoryError for anything else."""
    try:
        handle = os.open(name, _READ | os.O_DIRECTORY, dir_fd=holder)
    except PermissionError:
        os.chmod(name, stat.S_IRWXU, dir_fd=holder)
        handle = os.open(name, _READ | os.O_DIRECTORY, dir_fd=holder)
    except OSError as failure:
        if failure.errno == errno.ELOOP:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name) from None
        raise
    with suppress(OSError):  # it may belong to another user, whose it may be to delete
        _unlock(handle)
        os.fchmod(handle, stat.S_IRWXU)
    return handle


def _names(directory: int) -> list[str]:
    with os.scandir(directory) as found:
        return [entry.name for entry in found]


def _unlink(name: str, holder: int) -> None:
    try:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=holder)
    except PermissionError:
        handle = os.open(name, _READ, dir_fd=holder)
        try:
            _unlock(handle)
        finally:
            os.close(handle)
        os.unlink(name, dir_fd=holder)


def _unlock(handle: int) -> None:
    """Takes the marks from a file or directory that keep even root from changing it."""
    (flags,) = struct.unpack("@l", fcntl.ioctl(handle, _GET_FLAGS, struct.pack("@l", 0)))
    if flags & _LOCKED:
        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("@l", flags & ~_LOCKED))
