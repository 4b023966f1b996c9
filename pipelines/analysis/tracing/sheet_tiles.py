"""The choice of one tile of a result sheet: an entry, one of its queries, and the number of a neighbour."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.analysis import query_answers
from pipelines.analysis.query_answers import AnswerNeighbour, QueryAnswer
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.errors import LookalikeError
from pipelines.library import result_sheets
from stages.datum.text_format import counted, first_of
from stages.record.pfs_names import escape_component

_SHORTEST_ID = 4
"""Digits of the shortest start of an id that names a query."""

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class SheetTile:
    """One neighbour of one query: the entry's true name, the answer, and the neighbour's number in it, from 1.
    `commit`: the commit of render that it was read at."""

    entry: str
    commit: str
    answer: QueryAnswer
    rank: int

    @property
    def neighbour(self) -> AnswerNeighbour:
        return self.answer.tiles[self.rank - 1]


def tile(connection: Connection, entry: str, query: str, rank: int, at: str) -> SheetTile:
    """The tile of this entry. query: see `tracer.trace`; at: the id of a commit set, "" for now.

    Raises LookalikeError for an entry without a sheet, an unknown or ambiguous query, and a rank above the number of
    neighbours.
    """
    entry = entry.rstrip("/") or entry
    repo = Repository(connection, result_sheets.REPO, at).good()
    path = escape_component(entry).partition("/")[0]
    answers = _answers(repo, entry, path) if repo is not None else None
    if repo is None or answers is None:
        raise LookalikeError(
            result_sheets.missing_sheets([entry], result_sheets.entries_with_sheets(connection, at), at)
        )
    if not answers:
        raise LookalikeError(f"{entry} has no pictures to search for: `lookalike results {entry}` gives the reason")
    chosen = _query(answers, query, entry) if query else min(answers, key=lambda each: each.sources)
    if not chosen.tiles:
        raise LookalikeError(f"{entry} has no neighbours: the library was empty; add pictures with `lookalike add`")
    if not 1 <= rank <= len(chosen.tiles):
        raise LookalikeError(_too_high(chosen, rank))
    return SheetTile(entry, repo.at, chosen, rank)


def _answers(repo: Repository, entry: str, path: str) -> list[QueryAnswer] | None:
    """The answers to an entry, at a path of render; None without their file."""
    try:
        with suppress_not_found():
            return query_answers.read(path, repo.read(f"/{path}/{result_sheets.ANSWERS}"))
    except (KeyError, TypeError, ValueError) as error:
        raise LookalikeError(f"the answers of {entry} were not written by lookalike's render: {error!r}") from error
    return None


def _query(answers: Sequence[QueryAnswer], query: str, entry: str) -> QueryAnswer:
    """The query of this name: all of it, all but the entry, its last part, or its id or the start of that."""
    whole = [each for each in answers if not {query, f"{entry}/{query}"}.isdisjoint(each.sources)]
    last = [each for each in answers if any(name.rpartition("/")[2] == query for name in each.sources)]
    by_id = [each for each in answers if len(query) >= _SHORTEST_ID and each.id.startswith(query)]
    found = whole or last or by_id
    if len(found) == 1:
        return found[0]
    named = sorted(_name(each) for each in found or answers)
    listed = first_of(named, _MOST_NAMED)
    if found:
        raise LookalikeError(f"{query} is the name of {len(found)} queries of {entry}: name one of {listed}")
    raise LookalikeError(f"{entry} has no query {query}: it has {listed}")


def _name(answer: QueryAnswer) -> str:
    return next(iter(answer.sources), answer.id)


def _too_high(chosen: QueryAnswer, rank: int) -> str:
    count = len(chosen.tiles)
    named = f"{_name(chosen)} has {counted(count, 'neighbour', 'neighbours')}, so there is none of rank {rank}"
    if rank < 1:
        return f"{named}: ranks begin at 1"
    if count < chosen.k:
        return f"{named}: the library has no more pictures"
    return f"{named}: `lookalike deploy --set K={rank}` keeps more, and computes all answers again"
