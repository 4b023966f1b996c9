"""A folder that is looked at again and again, for files that have changed and are at rest again.

Looks, not inotify: that does not hear of changes on shared disks, and watches a limited number of folders. Knows no
library.
"""

import contextlib
import os
from pathlib import Path

from pipelines.library.picture_hashes import state_of
from stages.record.pfs_names import is_system_file


class FolderWatcher:
    """A folder, the states of its files at the last look, and those at the last sync."""

    def __init__(self, directory: Path) -> None:
        self.restless: frozenset[Path] = frozenset()
        """The files that changed, came or went between the last two looks: they may be half written."""
        self.filling = False
        """Whether files came or went between the last two looks: some that are missing may be about to come."""
        self._directory = directory
        self._seen: dict[Path, object] | None = None
        self._taken: dict[Path, object] | None = None

    @property
    def is_new(self) -> bool:
        """Whether there was no sync yet."""
        return self._taken is None

    def look(self) -> bool:
        """Whether a file at rest is not as it was at the last sync. Before the first one, whether this look is not the
        first: that knows of nothing whether it is at rest."""
        before, self._seen = self._seen, self._states()
        if before is None:
            return False
        self.restless = frozenset(_different(before, self._seen))
        self.filling = before.keys() != self._seen.keys()
        return self._taken is None or bool(_different(self._taken, self._seen) - self.restless)

    def taken(self) -> None:
        """Remembers that the files at rest have been synced as they were at the last look, and so have those that are
        missing unless the folder is filling."""
        seen, before = self._seen or {}, self._taken or {}
        rest = {path: state for path, state in seen.items() if path not in self.restless}
        waiting = self.restless | (before.keys() - seen.keys() if self.filling else frozenset())
        self._taken = rest | {path: state for path, state in before.items() if path in waiting}

    def _states(self) -> dict[Path, object]:
        found: dict[Path, object] = {}
        for here, below, files in os.walk(self._directory):
            below[:] = [name for name in below if not is_system_file(name)]
            for path in (Path(here) / name for name in files if not is_system_file(name)):
                found[path] = None
                with contextlib.suppress(OSError):
                    found[path] = state_of(path)
        return found


def _different(one: dict[Path, object], other: dict[Path, object]) -> set[Path]:
    nothing = object()
    return {path for path in one.keys() | other.keys() if one.get(path, nothing) != other.get(path, nothing)}
