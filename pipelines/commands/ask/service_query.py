"""The part of the command `query` that a running service answers: nothing is put, and no sheet is written."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.client.server.connection import Connection
from pipelines.client.services import service_discovery
from pipelines.client.services.search_client import QueryPicture, SearchClient, SearchError
from pipelines.client.services.service_discovery import ServiceEndpoint
from pipelines.commands.kit.terminal import say
from pipelines.library import queries, result_sheets
from pipelines.library.picture_sources import PictureSource

_MOST = 100
"""Most pictures of one call; more of them are better put in one commit."""

_K = 3
"""Neighbours of each picture where the pipelines do not tell."""


@dataclass(frozen=True, slots=True)
class ServiceAnswers:
    """What a service answered: for each picture its entry and an answer in the form of a line of neighbors.jsonl; the
    commits that it comes from; the skipped directory entries, and why files could not be read, by path."""

    service: ServiceEndpoint
    seconds: float
    answers: Sequence[tuple[str, Mapping[str, Any]]]
    commits: Mapping[str, str]
    left_out: Sequence[str]
    unreadable: Mapping[str, str]


def ask(connection: Connection, paths: Sequence[Path], k: int | None) -> ServiceAnswers | None:
    """The answers of the service that runs for this library; None, with the reason where a user would wonder, if there
    is none or if it cannot take these pictures. Raises LookalikeError for a path without files."""
    service = service_discovery.running(connection)
    if service is None or service.status.get("state") != "ready":
        return None
    began = time.monotonic()
    found = queries.find(paths)
    sources = [source for group in found.groups for source in group]
    if len(sources) > _MOST or any(source.holds_many for source in sources):
        say(f"{service.words} takes up to {_MOST} single pictures: asking the pipelines")
        return None
    wanted = k or result_sheets.neighbours_kept(connection) or _K
    try:
        with SearchClient(service) as searches:
            answers = searches.search_each([_picture(source) for source in sources], k=wanted)
    except SearchError as error:
        say(f"{service.words} did not answer ({error}): asking the pipelines")
        return None
    return ServiceAnswers(
        service,
        time.monotonic() - began,
        [(each.name, _line(each.name, answer)) for each, answer in zip(sources, answers, strict=True)],
        answers[0]["commits"],
        found.left_out,
        found.unreadable,
    )


def _picture(source: PictureSource) -> QueryPicture:
    return QueryPicture(source.path.read_bytes(), source.name.rpartition("/")[2])


def _line(name: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as a line of neighbors.jsonl."""
    return {
        "backbone": answer["model"]["described"],
        "k": answer["k"],
        "metric": answer["metric"],
        "model": answer["model"]["sha256"],
        "neighbors": [
            {
                "distance": each["distance"],
                "id": each["id"],
                "sources": [source["path"] for source in each["sources"]],
            }
            for each in answer["neighbours"]
        ],
        "query": answer["pictures"][0]["id"],
        "sources": [name],
    }
