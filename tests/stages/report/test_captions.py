"""The texts of a result sheet."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from stages.files.packs import Rejection
from stages.quality.entry_answers import EntryAnswers, QueryAnswer, QueryMatch
from stages.record.origin import Origin
from stages.report import captions

MATCHES = tuple(QueryMatch(f"{n}", n / 10, (), b"a picture") for n in range(3))
BARE = tuple(replace(match, thumbnail=None) for match in MATCHES)


def answers(
    queries: int,
    found: int,
    k: int = 3,
    metric: str | None = "euclidean",
    rejected: int = 0,
    pictured: int | None = None,
) -> EntryAnswers:
    most = queries if pictured is None else pictured
    each = tuple(QueryAnswer(f"{n}", (), None, (MATCHES if n < most else BARE)[:found]) for n in range(queries))
    return EntryAnswers(
        "garden", k, Origin("m", "pad"), metric, each, (Rejection("a", "preprocess", "empty"),) * rejected
    )


def test_the_summary_counts_the_shown_queries() -> None:
    assert (
        captions.summary(answers(1, 3), 1, 3)
        == "1 query picture, each with its 3 nearest pictures by euclidean distance"
    )
    assert (
        captions.summary(answers(7, 3), 5, 1)
        == "5 of 7 query pictures, each with its 1 nearest picture by euclidean distance"
    )
    assert captions.summary(
        replace(answers(1, 3), origin=Origin("a" * 64, "pad", backbone="a net at 96 px")), 1, 3
    ).endswith("nearest pictures by euclidean distance with a net at 96 px")
    assert captions.summary(answers(7, 2), 7, 3).startswith("7 query pictures, each with its 2 nearest pictures")
    assert captions.summary(answers(7, 0, metric=None), 7, 3) == "7 query pictures"


@pytest.mark.parametrize(
    ("given_answers", "said"),
    [
        (answers(200, 3), []),
        (answers(2, 0, metric=None), ["The library is empty"]),
        (answers(2, 1), ["The library has only 1 picture, but 3 neighbours"]),
        (answers(0, 0, metric=None, rejected=1), ["This entry has no pictures", "1 file in this entry was rejected"]),
        (answers(2, 3, rejected=2), ["2 files in this entry were rejected"]),
        (answers(2100, 3, pictured=1000), ["Neighbours are shown as pictures for 1,000 of the 2,100 queries, by"]),
    ],
)
def test_notes(given_answers: EntryAnswers, said: list[str]) -> None:
    notes = captions.notes(given_answers)
    assert len(notes) == len(said)
    assert all(re.match(re.escape(beginning), note) for note, beginning in zip(notes, said, strict=True))
