"""Words of the command line as names: a name first, a pattern second."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pipelines.library.selection import NothingFoundError, select

COMPONENTS = st.text("ab[]{}?*,-\\", min_size=1, max_size=4)
LIBRARIES = st.lists(st.lists(COMPONENTS, min_size=1, max_size=3).map("/".join), min_size=1, max_size=9, unique=True)


def selected(word: str, names: list[str]) -> list[str]:
    return select([word], names.__contains__, lambda: names, "the library")


@given(LIBRARIES, st.data())
def test_the_name_of_a_file_or_folder_means_nothing_else(names: list[str], data: st.DataObject) -> None:
    parts = data.draw(st.sampled_from(names)).split("/")
    word = "/".join(parts[: data.draw(st.integers(1, len(parts)))])
    assert selected(word, names) == ([word] if word in names else sorted(e for e in names if e.startswith(f"{word}/")))
    below = sorted(each for each in names if each.startswith(f"{word}/"))
    if below:
        assert selected(f"{word}/", names) == below


def test_a_pattern_comes_after_the_name_that_a_path_has_when_it_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x" / "[ab]").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    names = ["x/a/1.jpg", "[ab]/2.jpg"]
    assert selected("x/[ab]", names) == ["[ab]/2.jpg"]
    assert selected("x/[ab]", names[:1]) == ["x/a/1.jpg"]
    with pytest.raises(NothingFoundError):
        selected("x/[bc]", names)
