"""The journal of an interrupted measurement, and what is made of several sizes."""

import json
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from benchmarks.kit.engine import Work
from benchmarks.kit.trees import Usage
from benchmarks.races import passes
from benchmarks.races.passes import Pass
from benchmarks.whole import bysize, journal
from benchmarks.whole.journal import Journal
from benchmarks.whole.library import Step
from benchmarks.whole.runs import Kept, Size, Whole
from benchmarks.whole.storage import Needed
from benchmarks.whole.supply import MOST_QUERIES, supply
from stages.decode.stl10 import RECORD
from stages.files import blocks

SETTINGS = {"pictures": 60}


def test_what_is_kept_is_not_made_again(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> int:
        made.append(1)
        return len(made)

    first = Journal(tmp_path / "journal.json", SETTINGS)
    assert first.once("a", make) == 1
    again = Journal(tmp_path / "journal.json", SETTINGS)
    assert again.once("a", make) == 1
    assert again.once("b", make) == 2
    assert again.get("c") is None
    assert json.loads((tmp_path / "journal.json").read_text())["b"] == 2


def test_another_measurement_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.json", SETTINGS).keep("a", 1)
    with pytest.raises(RuntimeError, match=r"holds the state of another measurement, pictures 60: go on with that"):
        Journal(tmp_path / "journal.json", {"pictures": 61})


def test_a_life_lasts_until_now_while_it_lasts(tmp_path: Path) -> None:
    kept = Journal(tmp_path / "journal.json", SETTINGS)
    before = time.time()
    with kept.living(lambda: {"used": 3}):
        ((begun, ended),) = kept.lives
        assert before <= begun <= ended <= time.time()
        assert journal.alive(kept.lives, before, time.time() + 100) < 90
    ((_, last),) = kept.lives
    assert last == kept.lives[0][1]  # it has ended
    again = Journal(tmp_path / "journal.json", SETTINGS)
    assert again.get("used") == 3
    with again.living(dict):
        pass
    assert len(again.lives) == 2


def test_only_lives_count() -> None:
    lives = [(0.0, 10.0), (20.0, 30.0), (50.0, 60.0)]
    assert journal.alive(lives, 5, 25) == 10
    assert journal.alive(lives, 11, 19) == 0
    assert journal.alive(lives, 0, 100) == 30
    assert [journal.interruptions(lives, *times) for times in ((5, 8), (5, 25), (5, 55), (21, 100))] == [0, 1, 2, 1]


@given(st.lists(st.floats(0, 100), min_size=2, max_size=10, unique=True), st.floats(0, 50), st.floats(50, 100))
def test_time_alive_is_the_sum_of_its_parts(times: list[float], begun: float, ended: float) -> None:
    ordered = sorted(times)
    lives = [(first, last) for first, last in zip(ordered[::2], ordered[1::2], strict=False)]
    middle = (begun + ended) / 2
    parts = journal.alive(lives, begun, middle) + journal.alive(lives, middle, ended)
    assert journal.alive(lives, begun, ended) == pytest.approx(parts)
    assert 0 <= parts <= ended - begun + 1e-9


def test_pictures_are_made_alike_and_the_queries_outlast_the_library(tmp_path: Path) -> None:
    assert supply(tmp_path, 1_000_000).sizes == (1_000_000 - MOST_QUERIES, MOST_QUERIES)
    made = supply(tmp_path, 50)
    assert made.sizes == (45, 5)
    made.write()
    before = made.library.read_bytes(), made.queries.read_bytes()
    assert [len(each) for each in before] == [45 * RECORD, 5 * RECORD]
    made.write()
    assert (made.library.read_bytes(), made.queries.read_bytes()) == before
    split = made.split
    assert len({each.name for each in (*split.library, *split.queries)}) == 50
    assert b"".join(blocks.content(split.library[3].span)) == before[0][3 * RECORD : 4 * RECORD]
    assert made.sample(4, 96).shape == (4, 96, 96, 3)
    assert made.sample(100, 32).shape == (45, 32, 32, 3)
    made.library.unlink()
    assert b"".join(blocks.content(split.queries[1].span)) == before[1][RECORD : 2 * RECORD]


def measured(pictures: int, seconds: float) -> Whole:
    """A run in which everything takes so many seconds; search takes them squared."""
    works = (Work("features", seconds, seconds, 1, 0), Work("search", seconds**2, seconds, 1, 0))
    step = Step("fill", seconds, 1.0, works, pictures, Usage(10.0, 0.4, 100.0), 2)
    kept = Kept(
        "full",
        {"chunks": 23 * pictures, "trash": 5 * pictures},
        Needed(10 * pictures, 5 * pictures, 4 * pictures, pictures),
    )
    return Whole(Size(pictures, 96), step, [Pass(100, 1.0, 0.5), Pass(100, 3.0, 1.5)], kept=[kept])


def test_sizes_are_shown_side_by_side_with_their_growth() -> None:
    done = {Size(1_000, 96): measured(1_000, 10.0), Size(10_000, 96): measured(10_000, 110.0)}
    table = {
        cells[0]: cells[1:]
        for line in bysize.tables(done).splitlines()
        for cells in [[each.strip() for each in line.strip("|").split("|")]]
    }
    assert table["pictures of 96 px"] == ["1,000", "10,000", "1,000 to 10,000"]
    assert table["features"] == ["10.00 s", "110.00 s", "n^1.04"]
    assert table["search"] == ["100.00 s", "12,100.00 s", "n^2.08"]  # exact: it may
    assert table["put"] == ["1.00 s", "1.00 s", "n^0.00"]
    assert table["bare passes"] == ["20.00 s", "200.00 s", "n^1.00"]
    assert table["to the sheet, of the bare passes"] == ["0.50 ×", "0.55 ×", ""]
    assert table["on disk, of the bytes needed"] == ["1.150 ×", "1.150 ×", ""]
    assert table["the server's own part of it"] == ["4.0%", "4.0%", ""]
    assert table["interruptions"] == ["2", "2", ""]
    steep = {Size(1_000, 96): measured(1_000, 10.0), Size(10_000, 96): measured(10_000, 200.0)}
    assert "| features | 10.00 s | 200.00 s | **n^1.30** |" in bysize.tables(steep)


def test_a_step_is_read_as_it_was_written() -> None:
    step = measured(1_000, 2.0).fill
    assert Step.parsed(json.loads(json.dumps(asdict(step)))) == step


def test_the_mean_of_passes() -> None:
    assert passes.mean([Pass(100, 1.0, 0.5), Pass(100, 3.0, 1.5)]) == Pass(100, 2.0, 1.0)
