"""The question.json of a query entry: what the pipelines are asked about its pictures."""

import json
from pathlib import Path

from stages.datum.contract import load
from stages.files import path_globs
from stages.files.question import OF_ENTRIES, Question, QuestionError, from_json

_MOST_JSON = 1 << 16
"""Bytes of a question.json."""


def read_entry(file: Path) -> bytes:
    """The content of an entry's question.json as `entry_json` writes it. Raises QuestionError if the pipelines cannot
    answer it, and FilterError for a filter that is not valid."""
    with file.open("rb") as stream:
        content = stream.read(_MOST_JSON + 1)
    if len(content) > _MOST_JSON:
        raise QuestionError(f"it has more than {_MOST_JSON:,} bytes")
    return entry_json(from_json(content))


def entry_json(question: Question) -> bytes:
    """The content of a question.json; equal questions give equal bytes. Raises as `read_entry`."""
    if beyond := sorted(question.given.keys() - OF_ENTRIES):
        known = ", ".join(sorted(OF_ENTRIES))
        raise QuestionError(
            f"{' and '.join(beyond)} cannot be asked of the pipelines, which know {known}. "
            "A service can answer: start `lookalike serve`, then use `lookalike query`, its page, or POST /search"
        )
    if path_globs.is_glob(question.filter):
        path_globs.regular_expression(question.filter)  # refuses a bad pattern
    if question.where:
        load("stages.filters.where_clause").check_where(question.where)
    return json.dumps(question.given, sort_keys=True).encode("ascii") + b"\n"
