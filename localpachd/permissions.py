"""The permissions of the server's root directory: nobody but its owner sees anything of it. Knows no file's content."""

import os
from pathlib import Path

PRIVATE = 0o600
"""The mode of every file in the root that user code does not get."""
_DIRECTORY = 0o700
_OTHERS_READ = 0o066


def close_off(root: Path, passable: str = "") -> None:
    """Gives the root directory to its owner alone and, where others could read it until now, all files in it: earlier
    versions left that to the umask. `passable` is the directory in it that the processes of others have to enter, ""
    for none; it protects its own content."""
    open_until_now = root.stat().st_mode & _OTHERS_READ
    root.chmod(0o711 if passable else _DIRECTORY)
    for path in root.iterdir():
        if path.name != passable and not path.is_symlink():
            path.chmod(_DIRECTORY if path.is_dir() else PRIVATE)
    for database in (root / "chunks").glob("*.sqlite*"):
        database.chmod(PRIVATE)
    if open_until_now:
        _close_files(root / "chunks")


def _close_files(directory: Path) -> None:
    for place, _, names in os.walk(directory):
        for name in names:
            if not (path := Path(place, name)).is_symlink():
                path.chmod(PRIVATE)
