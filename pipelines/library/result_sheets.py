"""Result sheets copied from `render` into a directory."""

import hashlib
import json
import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.client.commit_sets import inspect_commit
from pipelines.client.commit_writer import CommitWriter
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import result_folders
from pipelines.library.queries import true_name
from pipelines.library.snapshots import REPO as LIBRARY
from stages.datum import text_format
from stages.record.pfs_names import escape_component
from stages.report import page_links

REPO = "render"
ANSWERS = "neighbors.jsonl"
_K = "K"

_FURTHER_PAGE = re.compile(r"page-([1-9][0-9]*)\.html")

_LONGEST_NAME = 200
"""Most bytes in a directory's name; a longer name is cut, with a hash to keep it unique."""

_MOST_KNOWN = 10
"""Most entries that an error names."""


@dataclass(frozen=True, slots=True)
class ResultSheet:
    """The exported result sheet of one query entry: its true name, its directory, and notes for the reader, if
    any."""

    entry: str
    directory: Path
    notes: tuple[str, ...] = ()


def neighbours_kept(connection: Connection) -> int | None:
    """The number of neighbours that the pipelines keep for each query; None if that is not known."""
    info = connection.retry(ProjectJobs(connection).pipelines).get(REPO)
    text = "" if info is None else info.details.transform.env.get(_K, "")
    return int(text) if text.isdecimal() else None


def check(k: int | None, kept: int | None) -> None:
    """Raises LookalikeError if more neighbours are wanted than are kept."""
    if k is not None and kept is not None and k > kept:
        raise LookalikeError(
            f"{_K} is {kept}: only the {kept} nearest of each query are kept, not {k}. `lookalike deploy --set "
            f"{_K}={k}` changes that, and computes all answers again"
        )


def answers(sheet: ResultSheet, k: int | None = None) -> list[dict[str, Any]]:
    """The queries of a sheet, each with its nearest pictures, at most `k`: the lines of its neighbors.jsonl. None if
    another `render` wrote it. Raises LookalikeError if fewer than `k` were asked for."""
    lines = (sheet.directory / ANSWERS).read_text(errors="replace").splitlines()
    try:
        queries = [json.loads(line) for line in lines]
        for each in queries:
            check(k, int(each["k"]))
            each["neighbors"] = each["neighbors"][:k]
    except (ValueError, KeyError, TypeError):
        return []
    return queries


def export(connection: Connection, to: Path, wanted: Sequence[str] = (), at: str = "") -> list[ResultSheet]:
    """Writes the sheets of these entries (true names; all by default), as they are or were at a commit, each into a
    directory of the entry's name below `to`. Other files there are kept.

    Raises LookalikeError for an entry that has no sheet.
    """
    repo = connection.retry(Repository(connection, REPO, at).good)
    names = entries_with_sheets(connection, at)
    absent = [name for name in wanted if name not in names]
    if absent:
        raise LookalikeError(missing_sheets(absent, names, at))
    return [_export_one(connection, repo, names[name], name, to) for name in (wanted or names)] if repo else []


def entries_with_sheets(connection: Connection, at: str = "") -> dict[str, str]:
    """The entries that have sheets, now or at a commit: their names in PFS by their true names."""
    repo = connection.retry(Repository(connection, REPO, at).good)
    there = connection.retry(lambda: [each.path.split("/")[1] for each in repo.glob(f"/*/{ANSWERS}")] if repo else [])
    return {connection.retry(true_name, connection, entry, at): entry for entry in sorted(there)}


def library_of(connection: Connection, at: str = "") -> str:
    """The commit of `images` from which the sheets at a commit, by default the newest ones, were computed. If that is
    not known, the newest one; "" if there is none."""
    sheets = Repository(connection, REPO, at).good()
    found = None if sheets is None else inspect_commit(connection, LIBRARY, sheets.at)
    return str(found.commit.id) if found is not None else CommitWriter(connection, LIBRARY).newest()


def missing_sheets(absent: Sequence[str], known: Collection[str], at: str = "") -> str:
    """The error for entries that have no sheet, now or at a commit. known: those that have one."""
    none = f"no result sheet for {', '.join(absent)}{f' at commit {at}' if at else ''}"
    if not known and at:
        return f"{none}, nor for any other query: name a later one, see `lookalike commits`"
    if not known:
        return f"{none}, nor for any other query: `lookalike status` gives the reason"
    return f"{none}; these queries have one: {text_format.first_of(list(known), _MOST_KNOWN)}"


def _export_one(connection: Connection, repo: Repository, entry: str, name: str, to: Path) -> ResultSheet:
    directory = to / directory_name(name)
    result_folders.make(directory)
    files = {path.rpartition("/")[2]: path for path in connection.retry(lambda: list(repo.list(f"/{entry}")))}
    for file, path in files.items():
        connection.retry(_export_file, repo, path, directory / file)
    _drop_pages(directory, files)
    return sheet_in(directory, name)


def pages(directory: Path) -> list[Path]:
    """The pages of the sheet in a directory."""
    first = directory / page_links.FIRST
    return [*([first] if first.is_file() else []), *(path for _, path in further_pages(directory))]


def further_pages(directory: Path) -> Iterator[tuple[int, Path]]:
    """The pages in a directory behind the first one, with their numbers."""
    for path in sorted(directory.iterdir()):
        if found := _FURTHER_PAGE.fullmatch(path.name):
            yield int(found[1]), path


def _drop_pages(directory: Path, files: Collection[str]) -> None:
    """Deletes the pages of an earlier, longer sheet."""
    for _, path in further_pages(directory):
        if path.name not in files:
            path.unlink()


def copy_sheet(files: Path, directory: Path, entry: str) -> ResultSheet:
    """Copies the sheet of an entry from a directory of files into the one for people."""
    result_folders.make(directory)
    there = sorted(files.iterdir())
    for path in there:
        fresh = directory / f".{path.name}.new"
        shutil.copyfile(path, fresh)
        fresh.replace(directory / path.name)
    _drop_pages(directory, {path.name for path in there})
    return sheet_in(directory, entry)


def sheet_in(directory: Path, entry: str) -> ResultSheet:
    """The sheet of an entry that was written into a directory."""
    return ResultSheet(entry, directory, _notes(directory / ANSWERS))


def _export_file(repo: Repository, path: str, file: Path) -> None:
    fresh = file.with_name(f".{file.name}.new")
    with fresh.open("wb") as target:
        repo.fetch(path, target)
    fresh.replace(file)


def _notes(answers: Path) -> tuple[str, ...]:
    """The reasons for missing answers, as on the sheet itself."""
    lines = answers.read_text(errors="replace").splitlines()
    if not lines:
        return (text_format.NOTHING_TO_ASK,)
    try:
        queries = [json.loads(line) for line in lines]
        found, asked = max(len(query["neighbors"]) for query in queries), int(queries[0]["k"])
        limits = text_format.limited(queries[0]) if queries[0]["metric"] else ""
    except (ValueError, KeyError, TypeError):
        return ()  # another render's answers: what is in them is not known here
    if limits:
        return (limits,)
    if found == 0:
        return (text_format.EMPTY_LIBRARY,)
    return (text_format.small_library(found, asked),) if found < asked else ()


def directory_name(entry: str) -> str:
    """The name of an entry's directory: the entry's own if the file system allows it."""
    name = entry if entry.strip(".") and not set(entry) & {"/", "\0"} else escape_component(entry)
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) <= _LONGEST_NAME:
        return name
    start = raw[:_LONGEST_NAME].decode("utf-8", "ignore")
    return f"{start}…{hashlib.sha256(raw).hexdigest()[:16]}"
