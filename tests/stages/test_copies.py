from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.copies import Group, Near, groups, removable
from stages.sources import Source
from tests.stages.pairings import source


def near(sources: Sequence[Sequence[Source]], *pairs: tuple[int, int, float]) -> Near:
    first, second = (np.array([pair[side] for pair in pairs], np.int32) for side in (0, 1))
    ids = [f"{row:064x}" for row in range(len(sources))]
    return Near(
        ids, sources, first, second, np.array([pair[2] for pair in pairs], np.float32), np.full(len(pairs), 3, np.uint8)
    )


def paths(group: Group) -> list[list[str]]:
    return [[each.path for each in copy.sources] for copy in group.copies]


@given(st.integers(1, 12), st.data())
def test_groups_are_the_connected_pictures(count: int, data: st.DataObject) -> None:
    row = st.integers(0, count - 1)
    pairs = {(min(pair), max(pair)) for pair in data.draw(st.lists(st.tuples(row, row), max_size=12))}
    found = groups(near([(source(f"{each}"),) for each in range(count)], *((*pair, 0.1) for pair in sorted(pairs))))
    reach = {each: {each} for each in range(count)}
    for _ in range(count):
        for one, other in pairs:
            reach[one] |= reach[other]
            reach[other] |= reach[one]
    expected = {frozenset(map(str, each)) for each in reach.values() if len(each) > 1}
    assert {frozenset(path for row in paths(group) for path in row) for group in found} == expected
    assert all(len(group.removed) == group.size - 1 and group.kept not in group.removed for group in found)
    assert [group.size for group in found] == sorted((group.size for group in found), reverse=True)


@pytest.mark.parametrize(
    ("best", "other", "why"),
    [
        (source("z/long name", 40, 31), source("a", 40, 30, 9999, "2001-01-01T00:00:00"), "most pixels"),
        (source("z/long name", 30, 40, 1001), source("a", 40, 30, 1000, "2001-01-01T00:00:00"), "most bytes"),
        (source("z/long name", taken="2001-01-01T00:00:00"), source("a", taken="2001-01-01T00:00:01"), "taken first"),
        (source("z/long name", taken="2001-01-01T00:00:00"), source("a"), "taken first"),
        (source("zz"), source("aaa"), "shortest name"),
        (source("a"), source("b"), "first by name"),
    ],
)
def test_the_rule_of_keeping(best: Source, other: Source, why: str) -> None:
    for apart in ([(best,), (other,)], [(other,), (best,)], [tuple(sorted((best, other)))]):
        (group,) = groups(near(apart, *([(0, 1, 0.25)] if len(apart) > 1 else [(0, 0, 0.0)])))
        assert (group.kept, group.why, group.removed) == (best, why, (other,))
        assert group.is_exact is (len(apart) == 1)
        assert group.frees == other.bytes


def test_copies_come_by_their_distance_to_the_kept_one() -> None:
    pictures = [(source("far", 10),), (source("best", 99), source("twin", 99)), (source("near", 20),), (source("via"),)]
    (group,) = groups(near(pictures, (0, 1, 0.5), (1, 1, 0.0), (1, 2, 0.25), (0, 3, 0.3)))
    assert paths(group) == [["best", "twin"], ["near"], ["far"], ["via"]]
    assert [copy.distance for copy in group.copies] == [0, 0.25, 0.5, None]
    assert [each.path for each in group.removed] == ["twin", "near", "far", "via"]


def test_across_two_folders_the_first_is_kept_and_the_second_listed() -> None:
    pictures = [
        (source("train/a.jpg"), source("train/b.jpg")),
        (source("test/a.jpg", 900),),
        (source("train/only.jpg"), source("trained/x.jpg")),
        (source("other/a.jpg"),),
        (source("test"),),
    ]
    pairs = (0, 0, 0.0), (0, 1, 0.1), (1, 3, 0.1), (2, 2, 0.0), (2, 3, 0.1), (3, 4, 0.1)
    (group,) = groups(near(pictures, *pairs), ("train", "test"))
    assert (group.kept.path, group.why) == ("train/a.jpg", "in train")
    assert paths(group) == [["train/a.jpg", "train/b.jpg"], ["test/a.jpg"]]
    assert removable([group]) == ["test/a.jpg"]
    assert removable(groups(near(pictures, *pairs), ("test", "train"))) == ["train/a.jpg", "train/b.jpg"]
    assert groups(near(pictures, *pairs), ("train", "nothing")) == []
    (group,) = groups(near(pictures, *pairs), ("other", "test"))
    assert paths(group) == [["other/a.jpg"], ["test/a.jpg"], ["test"]]


def test_a_path_that_is_also_kept_is_never_on_the_list() -> None:
    """An archive's member may have the path of another file."""
    again = source("a.zip/b.jpg", 9)
    pictures = [(source("a.zip/b.jpg", 99),), (again,), (source("c.jpg", 1),)]
    found = groups(near(pictures, (0, 1, 0.1), (0, 2, 0.2)))
    assert again in found[0].removed
    assert removable(found) == ["c.jpg"]
