"""The removal of whatever user code has left behind: trees of any depth, without permissions, marked as immutable.

Knows no datums. What cannot be deleted keeps nothing else.
"""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from localpachd.worker.layout import linux_files

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def remove(path: Path) -> None:
    """Deletes a file or a whole tree; ignores absence. What cannot be deleted stays, and the first reason for that is
    raised as an OSError that names its place."""
    try:
        holder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not path.is_dir() or path.is_symlink():
            _permitted(lambda: os.unlink(path.name, dir_fd=holder), path.name, holder)
            return
        top = _opened(path.name, holder)
        try:
            failure = _empty(top, path)
        finally:
            os.close(top)
        if failure is not None:
            raise failure
        _permitted(lambda: os.rmdir(path.name, dir_fd=holder), path.name, holder)
    except FileNotFoundError:
        return
    except OSError as failure:
        place = failure.filename if str(failure.filename).startswith("/") else str(path)
        raise OSError(failure.errno, failure.strerror, place) from failure
    finally:
        os.close(holder)


def _empty(top: int, path: Path) -> OSError | None:
    """Deletes everything in the open directory `top`; returns the first failure, if there is one.

    Nothing descends into a tree: the directories within each directory are moved up beside it until there are none. So
    neither the length of a path nor the number of open files grows with the depth.
    """
    first: OSError | None = None
    waiting = _entries(top)
    while waiting:
        name, is_dir = waiting.pop()
        try:
            if is_dir:
                _flatten(name, top, waiting)
            else:
                _unlink(name, top)
        except FileNotFoundError:
            continue
        except OSError as failure:
            first = first or OSError(failure.errno, failure.strerror, str(path / name))
    return first


def _flatten(name: str, top: int, waiting: list[tuple[str, bool]]) -> None:
    """Deletes a directory of the directory `top`. Those within it are moved there, and wait for the same."""
    failure: OSError | None = None
    inner = _opened(name, top)
    try:
        for each, is_dir in _entries(inner):
            try:
                if is_dir:
                    _lift(each, inner, top, waiting)
                else:
                    _unlink(each, inner)
            except OSError as error:
                failure = failure or error
    finally:
        os.close(inner)
    if failure is not None:
        raise failure
    _permitted(lambda: os.rmdir(name, dir_fd=top), name, top)


def _lift(name: str, inner: int, top: int, waiting: list[tuple[str, bool]]) -> None:
    fresh = uuid4().hex
    _permitted(lambda: os.rename(name, fresh, src_dir_fd=inner, dst_dir_fd=top), name, inner)
    waiting.append((fresh, True))


def _unlink(name: str, holder: int) -> None:
    with suppress(FileNotFoundError):
        _permitted(lambda: os.unlink(name, dir_fd=holder), name, holder)


def _entries(directory: int) -> list[tuple[str, bool]]:
    """The names in a directory, and whether each is a directory."""
    with os.scandir(directory) as found:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]


def _opened(name: str, holder: int) -> int:
    """A directory, open to be read."""
    try:
        return os.open(name, _READ | os.O_DIRECTORY, dir_fd=holder)
    except PermissionError:
        os.chmod(name, stat.S_IRWXU, dir_fd=holder)
        return os.open(name, _READ | os.O_DIRECTORY, dir_fd=holder)


def _permitted(change: Callable[[], None], name: str, holder: int) -> None:
    """Makes a change to an entry of a directory; a second time, if need be, with all permissions on both."""
    try:
        change()
    except PermissionError:
        _free(holder)
        with suppress(OSError):  # what cannot be opened, such as a link, has no marks
            handle = os.open(name, _READ, dir_fd=holder)
            try:
                _free(handle)
            finally:
                os.close(handle)
        change()


def _free(handle: int) -> None:
    """Takes the marks from a file or directory that keep even root from changing it, and gives us all permissions on a
    directory."""
    linux_files.change_attributes(handle, take=linux_files.LOCKED)
    with suppress(OSError):  # it may belong to another user, whose it may be to delete
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            os.fchmod(handle, stat.S_IRWXU)
