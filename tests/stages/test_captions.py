"""The texts of a result sheet."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from stages import captions
from stages.answers import Answer, Answers, Match
from stages.packs import Rejection

MATCHES = tuple(Match(f"{n}", n / 10, (), None) for n in range(3))


def answers(queries: int, found: int, k: int = 3, metric: str | None = "euclidean", rejected: int = 0) -> Answers:
    each = tuple(Answer(f"{n}", (), None, MATCHES[:found]) for n in range(queries))
    return Answers("garden", k, "m", "pad", metric, each, (Rejection("a", "preprocess", "empty"),) * rejected)


def test_the_summary_counts_the_shown_queries() -> None:
    assert (
        captions.summary(answers(1, 3), 1, 3)
        == "1 query picture, each with its 3 nearest pictures by euclidean distance"
    )
    assert (
        captions.summary(answers(7, 3), 5, 1)
        == "5 of 7 query pictures, each with its 1 nearest picture by euclidean distance"
    )
    assert captions.summary(replace(answers(1, 3), backbone="a net at 96 px"), 1, 3).endswith(
        "nearest pictures by euclidean distance with a net at 96 px"
    )
    assert captions.summary(answers(7, 2), 7, 3).startswith("7 query pictures, each with its 2 nearest pictures")
    assert captions.summary(answers(7, 0, metric=None), 7, 3) == "7 query pictures"


@pytest.mark.parametrize(
    ("given_answers", "shown", "said"),
    [
        (answers(2, 3), 2, []),
        (answers(2, 0, metric=None), 2, ["The library is empty"]),
        (answers(2, 1), 2, ["The library has only 1 picture, but 3 neighbours"]),
        (answers(0, 0, metric=None, rejected=1), 0,
         ["This entry has no pictures", "1 file in this entry was rejected"]),
        (answers(2, 3, rejected=2), 2, ["2 files in this entry were rejected"]),
        (answers(200, 3), 100, ["index.html shows 100 of 200 queries; neighbors.jsonl has all"]),
    ],
)  # fmt: skip
def test_notes(given_answers: Answers, shown: int, said: list[str]) -> None:
    notes = captions.notes(given_answers, shown)
    assert len(notes) == len(said)
    assert all(re.match(re.escape(beginning), note) for note, beginning in zip(notes, said, strict=True))
