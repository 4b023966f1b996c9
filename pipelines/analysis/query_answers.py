"""Two answers to one question: the queries of two states of `render`, matched, and those whose neighbours differ.

Pure: takes the lines of neighbors.jsonl. Ids are hashes of pixels as they are compared, so with another size of
pictures every id is another; then pictures are matched by their names.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AnswerNeighbour:
    """A neighbour: its id, its distance, and its true names, sorted."""

    id: str
    distance: float
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The answer to a query picture of an entry (a PFS name): its id and true names, its neighbours, the nearest first,
    and how they were found."""

    entry: str
    id: str
    sources: tuple[str, ...]
    tiles: tuple[AnswerNeighbour, ...]
    k: int
    metric: str
    model: str
    backbone: str


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """A query's answers before and after."""

    old: QueryAnswer
    new: QueryAnswer


@dataclass(frozen=True, slots=True)
class QueryMatch:
    """The queries of two states: in both, only after, and only before. comparable: whether ids of the two states are of
    pictures of one size, so that equal pictures have equal ids."""

    both: tuple[AnswerPair, ...]
    new: tuple[QueryAnswer, ...]
    gone: tuple[QueryAnswer, ...]
    comparable: bool

    def differing(self) -> Iterator[AnswerPair]:
        """The queries whose neighbours are others, or in another order."""
        for each in self.both:
            if self.keys(each.old) != self.keys(each.new):
                yield each

    def keys(self, reply: QueryAnswer) -> list[object]:
        """The neighbours, as they can be compared between the two states."""
        return [tile.id if self.comparable else tile.sources for tile in reply.tiles]


def read(entry: str, content: bytes) -> list[QueryAnswer]:
    """The answers in an entry's neighbors.jsonl. Raises ValueError, KeyError or TypeError for a file that another
    `render` wrote."""
    return [_reply(entry, json.loads(line)) for line in content.splitlines()]


def parse(entry: str, content: bytes) -> list[QueryAnswer]:
    """The same; none in a file that another `render` wrote."""
    try:
        return read(entry, content)
    except (ValueError, KeyError, TypeError):
        return []


def differing(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """The lines of two files of answers that are not in the other one: after most changes few."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    has, had = set(after), set(before)
    return b"".join(line for line in before if line not in has), b"".join(line for line in after if line not in had)


def match(old: Iterable[QueryAnswer], new: Iterable[QueryAnswer], comparable: bool = False) -> QueryMatch:
    """Matches the queries of each entry by id, and those left by name. comparable: whether equal answers, which were
    left out, show that ids are of pictures of one size."""
    before, after = list(old), list(new)
    comparable = comparable or not _ids(before).isdisjoint(_ids(after)) or not before or not after
    both: list[AnswerPair] = []
    added: list[QueryAnswer] = []
    ids = {(each.entry, each.id): each for each in before}
    same = {(each.entry, each.id) for each in after if (each.entry, each.id) in ids}
    names = {(each.entry, name): each for each in before if (each.entry, each.id) not in same for name in each.sources}
    found: set[int] = set()
    for each in after:
        twin = ids.get((each.entry, each.id))
        twin = twin or next((names[each.entry, name] for name in each.sources if (each.entry, name) in names), None)
        if twin is None or id(twin) in found:
            added.append(each)
        else:
            found.add(id(twin))
            both.append(AnswerPair(twin, each))
    gone = tuple(each for each in before if id(each) not in found)
    return QueryMatch(tuple(both), tuple(added), gone, comparable)


def _ids(replies: Iterable[QueryAnswer]) -> set[str]:
    return {id_ for reply in replies for id_ in (reply.id, *(tile.id for tile in reply.tiles))}


def _reply(entry: str, line: Mapping[str, Any]) -> QueryAnswer:
    tiles = tuple(
        AnswerNeighbour(each["id"], float(each["distance"]), tuple(each["sources"])) for each in line["neighbors"]
    )
    return QueryAnswer(
        entry,
        line["query"],
        tuple(line["sources"]),
        tiles,
        int(line["k"]),
        line["metric"] or "",
        line["model"] or "",
        line.get("backbone") or "",
    )
