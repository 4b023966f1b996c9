"""The meaning of exit statuses, and output cut into lines."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from localpachd.worker.commands import LONGEST_LINE, LineSplitter, outcome
from tests.localpachd.worker.bench import Bench


@pytest.mark.parametrize(
    ("code", "accepted", "text"),
    [
        (0, (), ""),
        (3, (), "exit status 3"),
        (3, (3,), ""),
        (-9, (), "signal: killed"),
        (137, (), "signal: killed"),
        (139, (), "signal: segmentation fault"),
        (137, (137,), ""),
        (255, (), "exit status 255"),
    ],
)
def test_outcomes(code: int, accepted: tuple[int, ...], text: str) -> None:
    assert outcome(code, frozenset(accepted)) == text


@given(st.lists(st.binary(max_size=20)))
def test_lines_do_not_depend_on_how_their_bytes_arrive(pieces: list[bytes]) -> None:
    def fed(parts: list[bytes]) -> list[str]:
        said: list[str] = []
        lines = LineSplitter(said.append)
        for part in parts:
            lines.feed(part)
        lines.finish()
        return said

    assert fed(pieces) == fed([b"".join(pieces)])


def test_a_long_line_is_cut_and_the_next_one_is_whole() -> None:
    said: list[str] = []
    lines = LineSplitter(said.append)
    for _ in range(100):
        lines.feed(b"x" * 10_000)
    lines.feed(b"\nnext\r\n\nlast")
    lines.finish()
    assert said[0].startswith("x" * LONGEST_LINE + " … (cut")
    assert said[1:] == ["next", "", "last"]


def test_endless_output_without_newlines_takes_no_memory(at_home: Bench) -> None:
    result = at_home.one(at_home.sh("head -c 100000000 /dev/zero; echo; echo end >&2"))
    assert result.state == "PROCESSED"
    assert sorted(map(len, at_home.said()))[0] == 3
    assert max(map(len, at_home.said())) < LONGEST_LINE + 100


def test_output_that_comes_too_fast_is_counted_and_its_end_is_kept(at_home: Bench) -> None:
    at_home.one(at_home.sh("seq 200000; echo the reason >&2; exit 1"))
    said = at_home.said()
    (note,) = [each for each in said if each.startswith("… ")]
    left_out = int(note.split()[1].replace(",", ""))
    assert note == f"… {left_out:,} lines of output are left out here: they came faster than the log keeps them"
    kept = [each for each in said if each.isdigit()]
    assert len(kept) + left_out == 200_000
    assert kept[:2] == ["1", "2"]
    assert {"199999", "200000", "the reason"} <= set(said[said.index(note) :])
