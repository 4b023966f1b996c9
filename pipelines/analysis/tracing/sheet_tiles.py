"""The choice of one tile of a result sheet: an entry, one of its queries, and the number of a neighbour."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import result_sheets
from stages.datum.text_format import counted
from stages.record.pfs_names import escape_component

_SHORTEST_ID = 4
"""Digits of the shortest start of an id that names a query."""

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class SheetTile:
    """One neighbour of one query: the entry's true name and its path in PFS, ids and all true names of both pictures,
    the neighbour's number from 1, and the facts of the answer. `commit`: the commit of render that it was read at."""

    entry: str
    entry_path: str
    commit: str
    query: str
    query_names: tuple[str, ...]
    neighbour: str
    neighbour_names: tuple[str, ...]
    rank: int
    k: int
    metric: str
    distance: float
    backbone: str
    model: str


def tile(connection: Connection, entry: str, query: str, rank: int, at: str) -> SheetTile:
    """The tile of this entry. query: see `tracer.trace`; at: the id of a commit set, "" for now.

    Raises LookalikeError for an entry without a sheet, an unknown or ambiguous query, and a rank above the number of
    neighbours.
    """
    entry = entry.rstrip("/") or entry
    repo = Repository(connection, result_sheets.REPO, at).good()
    path = escape_component(entry).partition("/")[0]
    answers = _answers(repo, path) if repo is not None else None
    if repo is None or answers is None:
        raise LookalikeError(
            result_sheets.missing_sheets([entry], result_sheets.entries_with_sheets(connection, at), at)
        )
    if not answers:
        raise LookalikeError(f"{entry} has no pictures to search for: `lookalike results {entry}` gives the reason")
    try:
        chosen = _query(answers, query, entry) if query else min(answers, key=lambda each: list(each["sources"]))
        found = chosen["neighbors"]
        if not found:
            raise LookalikeError(f"{entry} has no neighbours: the library was empty; add pictures with `lookalike add`")
        if not 1 <= rank <= len(found):
            raise LookalikeError(_too_high(chosen, rank))
        return _tile(entry, path, repo.at, chosen, rank)
    except (KeyError, TypeError, ValueError) as error:
        raise LookalikeError(f"the answers of {entry} were not written by lookalike's render: {error!r}") from error


def _answers(repo: Repository, path: str) -> list[Mapping[str, Any]] | None:
    """The lines of an entry's neighbors.jsonl; None without that file."""
    try:
        return [json.loads(line) for line in repo.read(f"/{path}/{result_sheets.ANSWERS}").splitlines()]
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.NOT_FOUND:
            raise
        return None
    except ValueError as error:
        raise LookalikeError(f"the answers of {path} were not written by lookalike's render: {error}") from error


def _tile(entry: str, path: str, commit: str, chosen: Mapping[str, Any], rank: int) -> SheetTile:
    neighbour = chosen["neighbors"][rank - 1]
    return SheetTile(
        entry=entry,
        entry_path=path,
        commit=commit,
        query=chosen["query"],
        query_names=tuple(chosen["sources"]),
        neighbour=neighbour["id"],
        neighbour_names=tuple(neighbour["sources"]),
        rank=rank,
        k=int(chosen["k"]),
        metric=chosen["metric"],
        distance=float(neighbour["distance"]),
        backbone=chosen["backbone"],
        model=chosen["model"],
    )


def _query(answers: Sequence[Mapping[str, Any]], query: str, entry: str) -> Mapping[str, Any]:
    """The query of this name: all of it, all but the entry, its last part, or its id or the start of that."""
    whole = [each for each in answers if query in each["sources"] or f"{entry}/{query}" in each["sources"]]
    last = [each for each in answers if any(name.rpartition("/")[2] == query for name in each["sources"])]
    by_id = [each for each in answers if len(query) >= _SHORTEST_ID and each["query"].startswith(query)]
    found = whole or last or by_id
    if len(found) == 1:
        return found[0]
    named = sorted(_name(each) for each in found or answers)
    more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
    listed = f"{', '.join(named[:_MOST_NAMED])}{more}"
    if found:
        raise LookalikeError(f"{query} is the name of {len(found)} queries of {entry}: name one of {listed}")
    raise LookalikeError(f"{entry} has no query {query}: it has {listed}")


def _name(answer: Mapping[str, Any]) -> str:
    return str(next(iter(answer["sources"]), answer["query"]))


def _too_high(chosen: Mapping[str, Any], rank: int) -> str:
    count, k = len(chosen["neighbors"]), int(chosen["k"])
    named = f"{_name(chosen)} has {counted(count, 'neighbour', 'neighbours')}, so there is none of rank {rank}"
    if rank < 1:
        return f"{named}: ranks begin at 1"
    if count < k:
        return f"{named}: the library has no more pictures"
    return f"{named}: `lookalike deploy --set K={rank}` keeps more, and computes all answers again"
