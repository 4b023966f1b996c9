"""The part of the command `query` that a running service answers. It puts nothing and writes no sheet."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.client.server.connection import Connection
from pipelines.client.services import service_discovery
from pipelines.client.services.search_client import QueryPicture, SearchClient, SearchError
from pipelines.client.services.service_discovery import ServiceEndpoint
from pipelines.commands.kit.terminal import say
from pipelines.errors import LookalikeError
from pipelines.library import result_sheets
from pipelines.library.queries import QueryEntries
from pipelines.library.query_check import checked
from stages.datum.contract import StageError, load
from stages.files import query_texts
from stages.files.question import DEFAULT_K, Question
from stages.quality.distance_limits import DistanceLimits, likeness
from stages.record.pfs_names import QUESTION_FILE, is_text
from stages.record.sources import Source
from stages.report import answer_table
from stages.report.answer_table import Row

_MOST = 100
"""Most pictures of one call; more of them are better put in one commit."""

_BAD_PICTURE, _BAD_QUESTION = "not-a-picture", ("bad-filter", "no-text-tower")
"""The service's codes for a file, and for a filter and words, that are refused."""


@dataclass(frozen=True, slots=True)
class ServiceAnswers:
    """What a service answered: for each picture its entry and an answer in the form of a line of neighbors.jsonl, the
    commits that it comes from, the entries that were asked, without bad pictures, and the answers as a table."""

    service: ServiceEndpoint
    seconds: float
    answers: Sequence[tuple[str, Mapping[str, Any]]]
    commits: Mapping[str, str]
    asked: QueryEntries
    rows: Sequence[Row]


def ask(connection: Connection, found: QueryEntries, k: int | None, question: Question) -> ServiceAnswers | None:
    """The answers of the service that runs for this library, to a question about each picture, or about all together
    if it combines them; None, with the reason where a user would wonder, if there is none or if it cannot take these
    pictures. k: by default as many as the pipelines keep. Raises LookalikeError if no picture can be read."""
    service = service_discovery.running(connection)
    if service is None or service.status.get("state") != "ready":
        return None
    began = time.monotonic()
    sources = [source for group in found.groups for source in group]
    if len(sources) > _MOST or any(source.holds_many for source in sources):
        say(f"{service.words} takes up to {_MOST} single pictures: asking the pipelines")
        return None
    if any(source.name.endswith(f"/{QUESTION_FILE}") for source in sources):
        say(f"a {QUESTION_FILE} is for the pipelines: asking them")
        return None
    options = {**question.given, "k": k or result_sheets.neighbours_kept(connection) or DEFAULT_K}
    box = options.pop("box", None)
    texts = [each for each in sources if is_text(each.name)]
    pictured = [each for each in sources if each not in texts]
    names = [[each.name] for each in (*pictured, *texts)]
    pictures = [QueryPicture(each.path.read_bytes(), each.name.rpartition("/")[2], box=box) for each in pictured]
    try:
        words = [load("stages.filters.entry_question").read_text(each.path) for each in texts]
        with SearchClient(service) as searches:
            if "combine" in options:
                together, names = [*words, *filter(None, [options.pop("text", "")])], [[each.name for each in sources]]
                if len(together) > 1:
                    raise LookalikeError("one question combines pictures with one text: write all words as one")
                answers = [searches.search(pictures, text="".join(together) or None, **options)]
            else:
                answers = searches.search_each(pictures, **options)
                answers += [searches.search([], text=each, **options) for each in words]
    except StageError as error:
        raise LookalikeError(str(error)) from error
    except SearchError as error:
        if error.code == _BAD_PICTURE and (good := _good(found)).groups != found.groups:
            return ask(connection, good, k, question)
        if error.code in _BAD_QUESTION:
            raise
        say(f"{service.words} did not answer ({error}): asking the pipelines")
        return None
    nearest = [*map(_nearest, answers)]
    return ServiceAnswers(
        service,
        time.monotonic() - began,
        [_line(some, answer) for some, answer in zip(names, nearest, strict=True)],
        answers[0]["commits"],
        found,
        [row for some, each in zip(names, nearest, strict=True) for row in answer_table.rows(each, ", ".join(some))],
    )


def _nearest(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer with its k nearest pictures, those that the command shows, and with the words that the pipelines have
    for their distances."""
    scale = answer.get("scale")  # an older service has none
    scaled = DistanceLimits(**scale) if scale else None
    found = answer["neighbors"][: answer["k"]]
    named = [
        {**each, "likeness": each["likeness"] and likeness(scaled, each["distance"], each["same"])} for each in found
    ]
    return {**answer, "neighbors": named}


def _good(found: QueryEntries) -> QueryEntries:
    with checked(found) as good:
        return good()


def _text_id(answer: Mapping[str, Any]) -> str:
    return query_texts.make(answer["text"], answer["without"], Source("", "")).id


def _line(names: Sequence[str], answer: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The names of pictures, and the answer about them as a line of neighbors.jsonl: of the nearest pictures, however
    alike they are, as the pipelines give them."""
    limits = {name: answer[name] for name in ("filter", "where", "max_distance") if answer.get(name) not in ("", None)}
    asked = {name: answer[name] for name in ("text", "without", "unread") if answer.get(name)}
    line = {
        **limits,
        **asked,
        "backbone": answer["model"]["described"],
        "k": answer["k"],
        "metric": answer["metric"],
        "model": answer["model"]["sha256"],
        "neighbors": [
            {
                "distance": each["distance"],
                "id": each["id"],
                "likeness": each["likeness"],
                "sources": [source["path"] for source in each["sources"]],
            }
            for each in answer["neighbors"]
        ],
        "query": answer["pictures"][0]["id"] if answer["pictures"] else _text_id(answer),
        "sources": list(names),
    }
    return ", ".join(names), line
