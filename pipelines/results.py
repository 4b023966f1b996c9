"""Result sheets: getting them out of `render` into a directory, whole entries at a time."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.repository import Repository
from stages.names import escape_component, unescape

FILES = ("neighbors.jsonl", "grid.png", "index.html")

_LONGEST_NAME = 200
"""Bytes of a directory's name at most; the rest of a longer name is left out."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """The exported result sheet of one query entry: its true name and where its files lie."""

    entry: str
    directory: Path


def entries(connection: Connection, at: str = "") -> list[str]:
    """The PFS names of the entries that have a sheet, now or at a commit set."""
    return [_entry_of(info.file.path) for info in Repository(connection, "render", at).glob("/*/neighbors.jsonl")]


def _entry_of(path: str) -> str:
    return path.strip("/").rpartition("/")[0]


def export(connection: Connection, to: Path, wanted: Sequence[str] = (), at: str = "") -> list[Sheet]:
    """Writes the sheets of these entries (PFS names; all when none is given) below a directory, each in one named as
    the entry. Raises LookalikeError for an entry that has no sheet."""
    repo = Repository(connection, "render", at)
    there = entries(connection, at)
    missing = [unescape(entry) for entry in wanted if entry not in there]
    if missing:
        known = ", ".join(sorted(unescape(entry) for entry in there)) or "none"
        raise LookalikeError(f"there is no result sheet of {', '.join(missing)}; there are sheets of: {known}")
    return [_export_one(repo, entry, to) for entry in (wanted or there)]


def _export_one(repo: Repository, entry: str, to: Path) -> Sheet:
    target = to / directory_name(entry)
    fresh = to / f".{directory_name(entry)[:_LONGEST_NAME]}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for info in repo.list(f"/{entry}/"):
        name = info.file.path.rpartition("/")[2]
        with (fresh / name).open("wb") as file:
            repo.fetch(info.file.path, file)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return Sheet(unescape(entry), target)


def directory_name(entry: str) -> str:
    """A name that any file system takes for the directory of an entry's sheet: as the entry is called, where that can
    be, without what files may not be called and without the length that they may not have."""
    name = escape_component(unescape(entry)).replace("/", "").replace("%20", " ")
    return name[:_LONGEST_NAME]
