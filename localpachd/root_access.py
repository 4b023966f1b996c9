"""Access to a root directory: one process at a time, nobody but its owner, and why a server cannot start on it.

Knows the names of files, not their content. A server that runs meets such failures, too; there, each room says what
they mean for its work.
"""

import errno
import fcntl
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from localpachd import durable_files
from localpachd.disk import LEAST, Disk
from localpachd.errors import FailedPrecondition, NoSpace
from localpachd.sqlite import is_damage, open_existing

_DATABASES = ("pachd.sqlite", "chunks/small.sqlite")
_FIXES = {
    errno.EACCES: "give the user who runs localpachd the right to read and write there",
    errno.EPERM: "see whether it is marked as immutable (lsattr), and who owns it",
    errno.EROFS: "its disk can only be read: use another --root, or mount it for writing",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "the machine has too many open files",
    errno.EEXIST: "something else has this name: move it away",
    errno.ENOTDIR: "a file has the name of a directory: move it away",
    errno.EISDIR: "a directory has the name of a file: move it away",
    errno.EIO: "the disk fails: look at the system's log (dmesg)",
}

_log = logging.getLogger(__name__)

_PRIVATE = 0o600
"""The mode of every file in the root that user code does not get."""
_DIRECTORY = 0o700
_OTHERS_READ = 0o066


def restrict_to_owner(root: Path, passable: str = "") -> None:
    """Gives the root directory to its owner alone and, where others could read it until now, all files in it: earlier
    versions left that to the umask. `passable` is the directory in it that the processes of others have to enter, ""
    for none; it protects its own content."""
    try:
        _close_off(root, passable)
    except OSError as error:  # a file system without permissions, or a directory of somebody else
        _log.warning("others may be able to read %s: %s", root, error)


def _close_off(root: Path, passable: str) -> None:
    open_until_now = root.stat().st_mode & _OTHERS_READ
    root.chmod(0o711 if passable else _DIRECTORY)
    for path in root.iterdir():
        if path.name != passable and not path.is_symlink():
            _set(path, _DIRECTORY if path.is_dir() else _PRIVATE)
    for database in (root / "chunks").glob("*.sqlite*"):
        _set(database, _PRIVATE)
    if open_until_now:
        _close_files(root / "chunks")


def _close_files(directory: Path) -> None:
    for place, _, names in os.walk(directory):
        for name in names:
            if not (path := Path(place, name)).is_symlink():
                _set(path, _PRIVATE)


def _set(path: Path, mode: int) -> None:
    with suppress(FileNotFoundError):  # SQLite deletes files that it needs no more
        path.chmod(mode)


class RootLock:
    """Lets one process at a time use a root directory. The kernel releases the lock when the process ends. Raises
    FailedPrecondition while another one has it."""

    def __init__(self, root: Path) -> None:
        durable_files.make_directory(root, 0o700)
        self._file = (root / "lock").open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip()
            self._file.close()
            raise FailedPrecondition(
                f"{root} is in use by another localpachd (process {holder or 'unknown'}): stop it first, or use "
                "another --root"
            ) from None
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        """Lets another process use the root."""
        self._file.close()


@contextmanager
def explain_failures(root: Path) -> Iterator[None]:
    """Turns failures of the system and of SQLite within the block into NoSpace or FailedPrecondition, whose text says
    what stands in the way of a start, and what to do."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        disk = Disk(root)
        if disk.lacks_room():  # SQLite's files of shared memory alone take some of it
            raise NoSpace(f"{disk.text}; localpachd needs at least {LEAST >> 20} MiB to start") from error
        text = _of_system(root, error) if isinstance(error, OSError) else _of_database(root, error)
        raise FailedPrecondition(text) from error


def _of_system(root: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and not root.exists():
        return Disk(root).text
    place = error.filename if isinstance(error.filename, str | Path) else root
    fix = _FIXES.get(error.errno or 0, "repair that, or use another --root")
    return f"cannot use {place}: {error.strerror or error}; {fix}"


def _of_database(root: Path, error: sqlite3.Error) -> str:
    for name in _DATABASES:
        path = root / name
        problem = _problem(path)
        if problem:
            return (
                f"{path} cannot be read: {problem}; restore a backup (python -m localpachd restore BACKUP NEW_ROOT), "
                f"or move {root} away to begin with nothing"
            )
    return f"cannot use the databases in {root}: {error}; look at its disk, and at the rights on its files"


def _problem(path: Path) -> str:
    """What is wrong with a file of SQLite; "" if nothing is, or if it is not there."""
    if not path.exists():
        return ""
    if not path.is_file():
        return "it is not a file"
    if not os.access(path, os.R_OK | os.W_OK):
        return "permission denied"
    try:
        with open_existing(path, "ro", 1) as conn:
            (said,) = conn.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return f"it is damaged ({error})" if is_damage(error) else str(error)
    return "" if said == "ok" else f"it is damaged ({' '.join(str(said).split())})"
