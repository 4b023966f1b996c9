"""A folder on disk mirrored in the library: what differs, by content, and the one commit that makes it equal.

Only the names that begin with the folder's own are looked at. A picture is removed only if its file is certainly not
there any more: not because it could not be read, and not if nothing at all would be left. A folder may be looked at
again and again, for files that have changed and are at rest again. Looks, not inotify: that does not hear of changes on
shared disks, and watches a limited number of folders.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.client.repository import CopyFile
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import picture_sources
from pipelines.library.picture_hashes import PictureHashes, state_of
from pipelines.library.picture_sources import PictureSource
from pipelines.library.snapshots import REPO, open_library, own_path
from stages.datum.text_format import counted
from stages.record.pfs_names import is_system_file


@dataclass(frozen=True, slots=True)
class FolderDifference:
    """The difference between a folder and its pictures in the library, each list sorted by name.
     unchanged: the number of pictures that are in both, and equal. copies: for some of those added, the copy of
    an equal picture in the library, so that what was renamed need not be uploaded. left_out: as in
    `picture_sources.PictureSources`. unreadable: the reasons for which files could not be read, by path on disk; they
    stay in the library as they are.
    """

    folder: str
    added: list[PictureSource] = field(default_factory=list)
    changed: list[PictureSource] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0
    copies: dict[str, CopyFile] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    @property
    def sources(self) -> list[PictureSource]:
        """The files to put."""
        return [*self.added, *self.changed]

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def compare(
    connection: Connection,
    directory: Path,
    digests: PictureHashes,
    allow_empty: bool = False,
    restless: AbstractSet[Path] = frozenset(),
    filling: bool = False,
    report: Callable[[int], None] = lambda _: None,
) -> FolderDifference:
    """Compares a folder with the library. restless: files to leave alone, as if they could not be seen.

    filling: whether missing files may be about to come, so that none is removed. `report` hears of each block and file.

    Raises LookalikeError if there is no folder, or if none of its pictures in the library would be left, unless
    `allow_empty`: a disk that is not mounted is an empty folder.
    """
    folder = _folder(directory)
    # The library first: a picture that somebody puts from now on into both is in the folder, too.
    with open_library(connection) as newest:
        library = digests.library(newest, folder, report)
    files = {held.digest: held.path for held in library.values() if held.path}
    found = picture_sources.find([directory])
    seen, unreadable = _read(found.sources, digests, restless, report)
    missing = [] if filling else sorted(library.keys() - {each.name for each in found.sources})
    places = {name: directory / name.removeprefix(f"{folder}/") for name in missing}
    removed = [name for name, path in places.items() if path not in restless and _is_gone(path)]
    digests_held = {held.digest for held in library.values()}
    if library and len(removed) == len(library) and not allow_empty and digests_held.isdisjoint(seen.values()):
        raise _nothing_left(directory, folder, len(library), found.sources)
    return FolderDifference(
        folder,
        added=[each for each in seen if each.name not in library],
        changed=[each for each, digest in seen.items() if each.name in library and library[each.name].digest != digest],
        removed=removed,
        unchanged=sum(each.name in library and library[each.name].digest == digest for each, digest in seen.items()),
        copies={
            each.name: CopyFile(own_path(each.name), REPO, newest.commit, files[digest])
            for each, digest in seen.items()
            if each.name not in library and digest in files
        },
        left_out=found.left_out,
        unreadable=found.unreadable | unreadable,
    )


def _folder(directory: Path) -> str:
    """The name of the folder in the library. Raises LookalikeError if there is none."""
    if not directory.is_dir():
        raise LookalikeError(f"{directory} is not a directory" if directory.exists() else f"{directory}: not found")
    folder = picture_sources.folder_name(directory)
    if not folder:
        raise LookalikeError(f"{directory} has no name: give the folder of the pictures")
    return folder


def _read(
    sources: Sequence[PictureSource], digests: PictureHashes, restless: AbstractSet[Path], report: Callable[[int], None]
) -> tuple[dict[PictureSource, str], dict[str, str]]:
    """The hashes of the files that are at rest, and the reasons for which some could not be read, by path."""
    seen: dict[PictureSource, str] = {}
    unreadable: dict[str, str] = {}
    for source in sources:
        report(1)
        if source.path not in restless:
            try:
                seen[source] = digests.file(source)
            except OSError as error:
                unreadable[str(source.path)] = error.strerror or str(error)
    return seen, unreadable


def _is_gone(path: Path) -> bool:
    """Whether there is certainly no file of that path."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def _nothing_left(directory: Path, folder: str, held: int, sources: Sequence[PictureSource]) -> LookalikeError:
    pictures_of_it = counted(held, "picture", "pictures")
    if sources:
        why = f"{directory} has none of the {pictures_of_it} called {folder}/… in the library: is it another folder?"
    else:
        why = f"{directory} is empty, but the library has {pictures_of_it} of it: is its disk mounted?"
    return LookalikeError(f"{why} Nothing was changed; --allow-empty removes them")


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
