"""Owns the answers in a result sheet and checks them: measuring wrong answers would be worthless."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.library.result_sheets import ANSWERS, REPO


@dataclass(frozen=True, slots=True)
class Answers:
    """The lines of an entry's neighbors.jsonl, decoded."""

    lines: tuple[dict[str, Any], ...]

    def names(self) -> Iterator[str]:
        """The names of the library's pictures in them, repeated if shown repeatedly."""
        for line in self.lines:
            for each in line["neighbors"]:
                yield from each["sources"]

    @property
    def models(self) -> set[str]:
        """The backbones used."""
        return {str(line["model"]) for line in self.lines}

    def check(self, queries: int, k: int) -> None:
        """Raises RuntimeError unless so many queries have `k` neighbours each, nearest first."""
        asked = sum(len(line["sources"]) for line in self.lines)
        if asked != queries:
            raise RuntimeError(f"the sheet answers {asked:,} queries, and {queries:,} were put")
        for line in self.lines:
            distances = [each["distance"] for each in line["neighbors"]]
            if len(distances) != k or distances != sorted(distances):
                raise RuntimeError(
                    f"the sheet has {len(distances)} neighbours of {line['sources']}, not the {k} nearest"
                )

    def check_nearest(self, query: str, name: str, there: bool) -> None:
        """Raises RuntimeError unless the query's nearest neighbour, at distance 0, is this picture; if not `there`, if
        it is."""
        (line,) = (each for each in self.lines if query in each["sources"])
        nearest = line["neighbors"][0]
        if (nearest["distance"] == 0 and name in nearest["sources"]) != there:
            raise RuntimeError(f"the sheet {'does not find' if there else 'still finds'} {name}, asked for {query}")

    def check_gone(self, name: str) -> None:
        """Raises RuntimeError if the sheet shows a picture."""
        if name in self.names():
            raise RuntimeError(f"the sheet still shows {name}")


def read(connection: Connection, entry: str) -> Answers:
    """An entry's current answers."""
    content = Repository(connection, REPO).read(f"/{entry}/{ANSWERS}")
    return Answers(tuple(map(json.loads, content.splitlines())))
