"""Result sheets: getting them out of `render` into a directory."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.client.connection import Connection
from pipelines.client.repository import Repository
from pipelines.errors import LookalikeError
from pipelines.library.queries import true_name
from stages import wording
from stages.names import escape_component

REPO = "render"
ANSWERS = "neighbors.jsonl"

_LONGEST_NAME = 200
"""Bytes of a directory's name at most; a longer name is cut, and told from its like by a hash."""

_MOST_KNOWN = 10
"""How many entries an error names at most."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """The exported result sheet of one query entry: its true name, where its files lie, and what its reader must know
    (nothing where all is as expected)."""

    entry: str
    directory: Path
    notes: tuple[str, ...] = ()


def export(connection: Connection, to: Path, wanted: Sequence[str] = (), at: str = "") -> list[Sheet]:
    """Writes the sheets of these entries (true names; all when none is given), as they are or were at a commit, each
    into a directory below `to` that is called as the entry. Other files there are left alone.

    Raises LookalikeError for an entry that has no sheet.
    """
    repo = Repository(connection, REPO, at).good()
    there = {path.split("/")[1] for path in repo.glob(f"/*/{ANSWERS}")} if repo else set()
    names = {true_name(connection, entry, at): entry for entry in sorted(there)}
    missing = [name for name in wanted if name not in names]
    if repo is None or not names or missing:
        return _none(missing, list(names))
    return [_export_one(repo, names[name], name, to) for name in (wanted or names)]


def _none(missing: Sequence[str], known: Sequence[str]) -> list[Sheet]:
    if not missing:
        return []
    if not known:
        raise LookalikeError(
            f"there is no result sheet of {', '.join(missing)}, nor of any other query: `lookalike status` says why"
        )
    more = f" and {len(known) - _MOST_KNOWN} more" if len(known) > _MOST_KNOWN else ""
    raise LookalikeError(
        f"there is no result sheet of {', '.join(missing)}; there are those of {', '.join(known[:_MOST_KNOWN])}{more}"
    )


def _export_one(repo: Repository, entry: str, name: str, to: Path) -> Sheet:
    directory = to / directory_name(name)
    directory.mkdir(parents=True, exist_ok=True)
    for path in repo.list(f"/{entry}"):
        file = directory / path.rpartition("/")[2]
        fresh = file.with_name(f".{file.name}.new")
        with fresh.open("wb") as target:
            repo.fetch(path, target)
        fresh.replace(file)
    return Sheet(name, directory, _notes(directory / ANSWERS))


def _notes(answers: Path) -> tuple[str, ...]:
    """Why a sheet has fewer answers than were asked for, as the sheet itself says it."""
    lines = answers.read_text(errors="replace").splitlines()
    if not lines:
        return (wording.NOTHING_TO_ASK,)
    try:
        queries = [json.loads(line) for line in lines]
        found, asked = max(len(query["neighbors"]) for query in queries), int(queries[0]["k"])
    except (ValueError, KeyError, TypeError):
        return ()  # another render's answers: what is in them is not known here
    if found == 0:
        return (wording.EMPTY_LIBRARY,)
    return (wording.small_library(found, asked),) if found < asked else ()


def directory_name(entry: str) -> str:
    """What the directory of an entry's sheet is called: as the entry, where a directory can be."""
    name = entry if entry.strip(".") and not set(entry) & {"/", "\0"} else escape_component(entry)
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) <= _LONGEST_NAME:
        return name
    start = raw[:_LONGEST_NAME].decode("utf-8", "ignore")
    return f"{start}…{hashlib.sha256(raw).hexdigest()[:16]}"
