"""The permissions of the server's root directory: nobody but its owner sees anything of it. Knows no file's content."""

import contextlib
import logging
import os
from pathlib import Path

_log = logging.getLogger(__name__)

PRIVATE = 0o600
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
            _set(path, _DIRECTORY if path.is_dir() else PRIVATE)
    for database in (root / "chunks").glob("*.sqlite*"):
        _set(database, PRIVATE)
    if open_until_now:
        _close_files(root / "chunks")


def _close_files(directory: Path) -> None:
    for place, _, names in os.walk(directory):
        for name in names:
            if not (path := Path(place, name)).is_symlink():
                _set(path, PRIVATE)


def _set(path: Path, mode: int) -> None:
    with contextlib.suppress(FileNotFoundError):  # SQLite deletes files that it needs no more
        path.chmod(mode)
