"""Pictures put into `images` and removed from it, as top-level entries, in one commit.

A picture is a top-level file of its own or is in a block; never both, whoever writes at the same time.
"""

import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.client.commits import Commits
from pipelines.client.connection import Connection
from pipelines.client.filesets import FileSets
from pipelines.errors import LookalikeError
from pipelines.library.adding import Adding, Report
from pipelines.library.pictures import Source
from pipelines.library.removing import Choice, Removing, everything
from pipelines.library.selection import NothingFoundError, select
from pipelines.library.snapshots import REPO, Snapshot

SINGLE_FILES = 1000
"""Most files that are put as top-level files of their own; more go into blocks."""


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
    connection: Connection, sources: Sequence[Source], report: Report = lambda _: None, most_single: int = SINGLE_FILES
) -> Written:
    """Puts files under their true names, replacing those of the same name; files that cannot be read are left out.

    Up to `most_single` become one top-level file each, except those that are in a block already. More go into blocks,
    except archives and other files of many pictures. Raises LookalikeError if there are none or none can be read.
    """
    if not sources:
        raise LookalikeError("no files found: nothing was put")
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, FileSets(connection) as filesets:
        adding = Adding(connection, filesets, Path(scratch), sources, len(sources) > most_single, report)
        commit = Commits(connection, REPO).make(adding.content)
        return Written(adding.names, commit, adding.unreadable)


def remove(connection: Connection, words: Sequence[str]) -> Written:
    """Removes the pictures that these words mean, see `selection.select`, which may be names, folders and globs. Raises
    LookalikeError, and removes none, if one means nothing."""
    return _remove(connection, lambda library: select(words, library.holds, library.names, "the library"))


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
    with FileSets(connection) as filesets:
        return Commits(connection, REPO).make(lambda parent: everything(connection, filesets, parent))


def _remove(connection: Connection, choose: Choice) -> Written:
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, FileSets(connection) as filesets:
        removing = Removing(connection, filesets, Path(scratch), choose)
        commit = Commits(connection, REPO).make(removing.content)
        return Written(removing.names, commit)
