"""Folders of true paths, and filters."""

import fnmatch
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from stages.files import path_masks
from stages.files.path_globs import LONGEST, MOST_WILDCARDS, FilterError, is_glob
from stages.files.tables.parquet import stored_text
from stages.filters.picture_listing import ListedPicture
from stages.record.sources import Source
from stages.serving.search.library_attributes import LibraryAttributes
from stages.serving.search.library_paths import LibraryPaths
from tests.stages.filters.attribute_tables import attribute_table

NAMES = st.text("ab-0\udcff\0é\n.", max_size=3)
TREES = st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), min_size=1, max_size=30, unique=True)


def paths(*pictures: str | Sequence[str]) -> LibraryPaths:
    """Of pictures with one or several paths each, in two segments."""
    every = [[each] if isinstance(each, str) else list(each) for each in pictures]
    halves = every[: len(every) // 2], every[len(every) // 2 :]
    return LibraryPaths(
        [
            (
                pa.array([stored_text(path) for one in half for path in one], pa.string()),
                np.array([len(x) for x in half], np.int64),
            )
            for half in halves
        ]
    )


def pages(every: LibraryPaths, folder: str, limit: int) -> list[dict[str, Any]]:
    found = [every.listing(folder, None, limit)]
    while found[-1]["after"] is not None:
        found.append(every.listing(folder, found[-1]["after"], limit))
        assert len(found) < 100
    return found


def rows(pictures: Sequence[str | Sequence[str]], filter: str) -> list[int]:
    """The pictures with a path that a filter admits."""
    every = [[each] if isinstance(each, str) else each for each in pictures]
    table = attribute_table([[Source(path, "5eed") for path in one] for one in every])
    found = LibraryAttributes(table, lambda: paths(*pictures)).pictures("", filter)
    return [int(each) for each in np.flatnonzero(found)]


NAMED = ["b.jpg", "trip/2.jpg", "trip-1/9.jpg", ["trip/1.jpg", "a.jpg"], "trip/x/y/3.jpg", "trip/x/4.jpg", "tri.jpg"]
TRIP = paths(*NAMED)


def page(folder: str, folders: dict[str, int], pictures: list[tuple[int, str]], total: int) -> dict[str, Any]:
    """The only page of a folder. pictures: by row and path."""
    return {
        "folder": folder,
        "folders": [{"name": name, "pictures": count} for name, count in folders.items()],
        "pictures": [ListedPicture(*each) for each in pictures],
        "after": None,
        "total": total,
    }


def test_a_folder() -> None:
    assert TRIP.listing() == page("", {"trip-1": 1, "trip": 4}, [(3, "a.jpg"), (0, "b.jpg"), (6, "tri.jpg")], 8)
    inner = page("trip", {"x": 2}, [(3, "trip/1.jpg"), (1, "trip/2.jpg")], 4)
    assert TRIP.listing("trip") == TRIP.listing("trip/") == inner
    assert TRIP.listing("trip/x") == page("trip/x", {"y": 1}, [(5, "trip/x/4.jpg")], 2)
    for nothing in ("tri", "trip/2.jpg", "nothing", "trip/x/y/z"):
        assert TRIP.listing(nothing) == page(nothing, {}, [], 0)


def names(page: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Of its folders, and the paths of its pictures."""
    return [each["name"] for each in page["folders"]], [each.path for each in page["pictures"]]


def test_pages_of_a_folder() -> None:
    one, two, three = pages(TRIP, "", 2)
    assert names(one) == (["trip-1", "trip"], [])
    assert (names(two), names(three)) == (([], ["a.jpg", "b.jpg"]), ([], ["tri.jpg"]))
    assert names(TRIP.listing("", None, 3)) == (["trip-1", "trip"], ["a.jpg"])


def test_a_cursor_that_no_page_had() -> None:
    with pytest.raises(FilterError, match="leave it out"):
        TRIP.listing("", "anything")


def test_a_cursor_of_a_path_that_is_gone_continues_after_it() -> None:
    assert names(TRIP.listing("", "p:aa.jpg")) == ([], ["b.jpg", "tri.jpg"])
    assert names(TRIP.listing("", "d:trip-0"))[0] == ["trip-1", "trip"]


def test_two_pictures_with_one_path_are_on_one_page() -> None:
    every = paths("a", "b", "b", "b", "c")
    assert [[each.row for each in page["pictures"]] for page in pages(every, "", 2)] == [[0, 1, 2, 3], [4]]


@given(TREES, st.integers(1, 5))
@settings(deadline=None)
def test_pages_hold_everything_once(tree: list[str], limit: int) -> None:
    every = paths(*tree)
    for folder in {"", *(path.rpartition("/")[0] for path in tree)}:
        inside = folder + "/" if folder else ""
        if folder.endswith("/"):
            continue  # a folder without a name
        below = [path[len(inside) :] for path in tree if path.startswith(inside)]
        found = pages(every, folder, limit)
        assert {page["total"] for page in found} == {len(below)}
        folders = [each for page in found for each in page["folders"]]
        expected = {path.partition("/")[0] for path in below if "/" in path}
        assert {each["name"] for each in folders} == expected
        assert len(folders) == len(expected)
        assert sum(each["pictures"] for each in folders) == sum("/" in path for path in below)
        here = [each.path for page in found for each in page["pictures"]]
        assert sorted(here) == sorted(inside + path for path in below if "/" not in path)
        assert all(tree[each.row] == each.path for page in found for each in page["pictures"])


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ("", range(7)),
        ("trip", [1, 2, 3, 4, 5]),
        ("trip/", [1, 3, 4, 5]),
        ("trip/x/", [4, 5]),
        ("nothing", []),
        ("*.jpg", range(7)),
        ("[12].jpg", [1, 3]),
        ("[!12a-b].jpg", [2, 4, 5]),
        ("[^12a-b].jpg", [2, 4, 5]),
        ("trip/*", [1, 3]),
        ("trip/*.jpg", [1, 3]),
        ("trip/**", [1, 3, 4, 5]),
        ("trip/**/*.jpg", [1, 3, 4, 5]),
        ("**/y/*", [4]),
        ("*/?.jpg", [1, 2, 3]),
        ("{a,tri}.jpg", [3, 6]),
        ("trip{,-1}/{1,9}.*", [2, 3]),
        ("trip?1/*", [2]),
        ("*.JPG", []),
        ("trip", [1, 2, 3, 4, 5]),
    ],
)
def test_filters(filter: str, expected: Sequence[int]) -> None:
    assert rows(NAMED, filter) == list(expected)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("a[1].jpg", r"a\[1\]*"),
        ("a*b", r"?\*b"),
        ("a+(b)^$|.x", "a+(b)^$|.?"),
        ("a]b", "a[]]*"),
        ("a-b", "a[x-]?"),
        ("a\\b", r"?\\b"),
        ("a{b,c", r"a\{b,?"),
        ("a,b", "?,b"),
        ("a}b", "?}b"),
        ("new\nline", "new?line"),
        ("caf\udce9", "caf?????"),
        ("[", "?"),
        ("a&&b", "a[&]*"),
    ],
)
def test_special_characters_in_names(name: str, pattern: str) -> None:
    assert rows(["other", name], pattern) == [1]


@given(
    st.lists(
        st.lists(st.text("ab[]{}?*,-\\", min_size=1, max_size=4), min_size=1, max_size=3).map("/".join),
        min_size=1,
        max_size=9,
        unique=True,
    ),
    st.data(),
)
@settings(deadline=None)
def test_the_name_of_a_folder_or_file_is_no_pattern(names: list[str], data: st.DataObject) -> None:
    parts = data.draw(st.sampled_from(names)).split("/")
    name = "/".join(parts[: data.draw(st.integers(1, len(parts)))])
    filter = name + "/" * data.draw(st.booleans())
    try:
        found = rows(names, filter)
    except FilterError:
        assert name in names and filter != name  # a file and no folder, so the braces in it are those of a pattern
        return
    below = [each.startswith(f"{name}/") for each in names]
    expected = below if any(below) else [each == filter for each in names]
    if not is_glob(filter):
        expected = [each.startswith(filter) for each in names]
    if not any(expected):
        return
    assert found == np.flatnonzero(expected).tolist()
    sources = [Source("none of these", ""), Source(names[found[0]], "")]
    assert path_masks.inside_first(sources, paths(*names).meant(filter)) == [1, 0]


@given(st.text("ab*?", min_size=1, max_size=8), st.lists(st.text("ab", max_size=6), min_size=1, max_size=9))
@settings(deadline=None)
def test_patterns_of_names_are_those_of_fnmatch(pattern: str, names: list[str]) -> None:
    pattern = pattern.replace("**", "*").replace("**", "*").replace("**", "*")
    matching = [at for at, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern + "*")]
    assert rows(names, pattern + "*") == matching


@pytest.mark.parametrize(
    ("filter", "reason"),
    [
        ("{a,b", "{ without a }"),
        ("[z-a]", "wrong order: write a-z"),
        ("*a" * (MOST_WILDCARDS + 1), f"use at most {MOST_WILDCARDS}"),
        ("x" * (LONGEST + 1), f"use at most {LONGEST}"),
    ],
)
def test_filters_that_are_refused(filter: str, reason: str) -> None:
    with pytest.raises(FilterError) as failure:
        rows(NAMED, filter)
    assert reason in str(failure.value)


@pytest.mark.parametrize("filter", ["*a" * MOST_WILDCARDS, "**a" * MOST_WILDCARDS, "**a" + "?" * (MOST_WILDCARDS - 1)])
def test_no_filter_takes_long(filter: str) -> None:
    names = pa.array("a" * 200 + f"{number:06}" for number in range(5_000))
    start = time.process_time()
    assert not path_masks.admitted(names, filter + "z").any()
    assert time.process_time() - start < 2  # a backtracking matcher would take years


def test_masks_are_kept_and_cannot_be_changed() -> None:
    attributes = LibraryAttributes(attribute_table([[Source("trip/a", "5eed")]]), lambda: TRIP)
    mask = attributes.pictures("", "trip/")
    assert attributes.pictures("", "trip/") is mask
    with pytest.raises(ValueError, match="read-only"):
        mask[0] = True
