"""Contents of inputs kept between datums: read once where that is safe, and never those of another commit."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from stages.datum.contract import DatumInput
from stages.datum.input_cache import InputCache, MultiInputCache

INPUTS = st.tuples(st.sampled_from(["", "old", "new"]), st.sampled_from("abc"))


def content(given: tuple[str, str]) -> str:
    """Another one for each commit and path; that of "c" is three times as large."""
    commit, name = given
    return f"{commit} {name}" + " and more" * (name == "c")


@given(st.lists(INPUTS), st.integers(0, 60))
def test_what_is_kept_is_what_would_be_read(asked: list[tuple[str, str]], room: int) -> None:
    def read(each: DatumInput) -> str:
        return content((each.commit, each.repo_path))

    for cache in (InputCache(read), MultiInputCache(read, len, room)):
        assert [cache.get(DatumInput("x", Path(), name, commit)) for commit, name in asked] == list(map(content, asked))


@pytest.mark.parametrize(
    ("room", "read"), [(0, "abcabcabc"), (len("new a"), "abcbcbc"), (len("new a, new b"), "abc"), (1000, "abc")]
)
def test_inputs_that_find_room_and_the_last_one_are_read_once_however_often_they_take_turns(
    room: int, read: str
) -> None:
    seen = list[str]()

    def noted(each: DatumInput) -> str:
        seen.append(each.repo_path)
        return content((each.commit, each.repo_path))

    cache = MultiInputCache(noted, len, room)
    for name in "abc" * 3:
        cache.get(DatumInput("x", Path(), name, "new"))
    assert "".join(seen) == read
    seen.clear()
    cache.get(DatumInput("x", Path(), "a", "newer"))
    assert seen == ["a"]
    for _ in range(2):
        cache.get(DatumInput("x", Path(), "a", ""))
    assert seen == ["a", "a", "a"], "plain directories may change at any time"
