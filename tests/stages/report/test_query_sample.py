"""The choice of the shown queries depends only on the entry's name and the set of ids."""

from __future__ import annotations

import hashlib
from random import Random

from hypothesis import given, strategies as st

from stages.report.query_sample import FEWEST_PICTURED, GRID_QUERIES, most_pictured, sheet_queries

IDS = [hashlib.sha256(b"%d" % n).hexdigest() for n in range(300)]
ids_of_an_entry = st.lists(st.sampled_from(IDS), max_size=250)


@given(st.text(), ids_of_an_entry, st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(entry: str, ids: list[str], random: Random) -> None:
    again = ids + ids[: len(ids) // 2]
    random.shuffle(again)
    assert sheet_queries(entry, again) == sheet_queries(entry, ids)


@given(st.text(), ids_of_an_entry)
def test_all_are_shown_up_to_the_limit(entry: str, ids: list[str]) -> None:
    chosen = sheet_queries(entry, ids)
    assert len(chosen) == min(FEWEST_PICTURED, len(set(ids)))
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(ids)


@given(st.text(), st.sets(st.sampled_from(IDS), min_size=1))
def test_one_more_query_displaces_at_most_one(entry: str, ids: set[str]) -> None:
    newcomer = min(ids)
    before = sheet_queries(entry, ids - {newcomer})
    assert len(set(before) - set(sheet_queries(entry, ids))) <= 1


def test_the_entry_is_the_seed() -> None:
    assert sheet_queries("holiday", IDS)[:GRID_QUERIES] != sheet_queries("garden", IDS)[:GRID_QUERIES]


def test_the_choice_never_changes_between_versions() -> None:
    """Old sheets must stay the same, so the order is spelt out here a second time."""
    key = {query: hashlib.sha256(f"7:holiday:{query}".encode()).hexdigest() for query in IDS}
    assert sheet_queries("holiday", IDS) == sorted(IDS, key=key.__getitem__)[:FEWEST_PICTURED]
    assert [query[:8] for query in sheet_queries("holiday", IDS)[:3]] == ["3068430d", "0e652381", "82416496"]


def test_the_number_of_pictures_is_bounded_but_for_the_first_queries() -> None:
    assert [most_pictured(k) for k in (1, 3, 10, 30, 1000)] == [3000, 1000, 300, 100, 100]
