"""Pictures put into `images` and removed from it, as top-level entries, in one commit.

A picture is a top-level file of its own or is in a block; never both, whoever writes at the same time.
"""

import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.client.commits import Commits
from pipelines.client.filesets import FileSets
from pipelines.client.repository import Remove, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.changing import Changing, Choice, Report
from pipelines.library.pictures import Source
from pipelines.library.selection import NothingFoundError, select
from pipelines.library.snapshots import REPO, Downloads, Snapshot
from pipelines.library.syncing import Difference


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a write: the true names of the pictures put or removed, its commit, and the reasons for which
    files could not be read, by path on disk."""

    names: list[str]
    commit: str
    unreadable: dict[str, str] = field(default_factory=dict)

    @property
    def files(self) -> int:
        """The number of pictures put or removed."""
        return len(self.names)


def add(
    connection: Connection,
    sources: Sequence[Source],
    report: Report = lambda _: None,
    most_single: int | None = None,
) -> Written:
    """Puts files under their true names, replacing those of the same name; files that cannot be read are left out.

    Up to `most_single` (see Changing) become one top-level file each, except those that are in a block already. More go
    into blocks, except archives and other files of many pictures. Raises LookalikeError if there are none or none can
    be read.
    """
    if not sources:
        raise LookalikeError("no files found: nothing was put")
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, FileSets(connection) as filesets:
        changing = Changing(connection, filesets, Path(scratch), sources, most_single=most_single, report=report)
        commit = Commits(connection, REPO).make(changing.content)
        return Written(changing.names, commit, changing.unreadable)


def mirror(
    connection: Connection,
    different: Difference,
    report: Report = lambda _: None,
    most_single: int | None = None,
) -> Written:
    """Puts and removes, in one commit, what makes the library equal to a folder; files are laid out as by `add`.

    Pictures that others have removed meanwhile need no removal, and those that others put stay. `names` are those put.
    """
    sources = different.sources

    def present(library: Snapshot) -> list[str]:
        return [name for name in different.removed if library.holds(name)]

    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, FileSets(connection) as filesets:
        changing = Changing(
            connection, filesets, Path(scratch), sources, present, most_single, report, different.copies
        )
        commit = Commits(connection, REPO).make(changing.content)
        return Written(changing.names, commit, changing.unreadable)


def remove(connection: Connection, words: Sequence[str]) -> Written:
    """Removes the pictures that these words mean, see `selection.select`, which may be names, folders and globs. Raises
    LookalikeError, and removes none, if one means nothing."""
    return _remove(connection, lambda library: select(words, library.holds, library.names, "the library"))


def present(connection: Connection, names: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """Of these true names those that can be removed, and for the others the reasons: they are not in the library, or
    inside of a file of many."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        newest = Commits(connection, REPO).newest()
        library = Snapshot(connection, newest, Downloads(Path(scratch)))
        held = {name: library.holds(name) for name in names}
        absent = {name: _absence(library, name) for name, there in held.items() if not there}
        return [name for name, there in held.items() if there], absent


def forget(connection: Connection, names: Collection[str]) -> Written | None:
    """Removes the pictures with these true names, ignoring missing ones; None if all are missing."""

    def present(library: Snapshot) -> list[str]:
        found = [name for name in names if library.holds(name)]
        if not found:
            raise NothingFoundError("none of the pictures is in the library")
        return found

    try:
        return _remove(connection, present)
    except NothingFoundError:
        return None


def remove_all(connection: Connection) -> str:
    """Removes everything from `images`; returns the commit."""

    def content(parent: str) -> str:
        library = Snapshot(connection, parent, Downloads(Path()))
        return filesets.make(Repository(connection, REPO).requests(map(Remove, library.paths())))

    with FileSets(connection) as filesets:
        return Commits(connection, REPO).make(content)


def _absence(library: Snapshot, name: str) -> str:
    parts = name.split("/")
    above = ("/".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
    holder = next((each for each in above if library.holds(each)), None)
    return "not in the library" if holder is None else f"inside {holder}, which can only be removed as a whole"


def _remove(connection: Connection, choose: Choice) -> Written:
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, FileSets(connection) as filesets:
        changing = Changing(connection, filesets, Path(scratch), choose=choose)
        commit = Commits(connection, REPO).make(changing.content)
        return Written(changing.removed, commit)
