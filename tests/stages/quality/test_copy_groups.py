from typing import Any

import pytest
from hypothesis import given, strategies as st

from stages.quality.copy_groups import CopyGroup, exact_groups, near_groups, removable
from stages.record.sources import LOSSLESS, LOSSY, PALETTE, RAW, Source
from tests.stages.pairings import candidates, source


def paths(group: CopyGroup) -> list[list[str]]:
    return [[each.path for each in copy.sources] for copy in group.copies]


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), max_size=6))
def test_exact_groups_are_files_of_equal_content(contents: list[list[int]]) -> None:
    """contents: of each source of each picture."""
    pictures = [
        [source(f"{row}/{place}", pixels=f"{row} {content}" if content else "") for place, content in enumerate(each)]
        for row, each in enumerate(contents)
    ]
    found = exact_groups(candidates(pictures))
    expected = {
        frozenset(f"{row}/{place}" for place, each in enumerate(of) if each == content)
        for row, of in enumerate(contents)
        for content in of
        if content and of.count(content) > 1
    }
    assert {frozenset(path for row in paths(group) for path in row) for group in found} == expected
    assert all(len(group.others) == group.size - 1 and group.kept not in group.others for group in found)
    assert [group.size for group in found] == sorted((group.size for group in found), reverse=True)
    assert len(removable(found)) == sum(len(each) - 1 for each in expected)


@given(st.integers(1, 10), st.data())
def test_near_groups_are_of_files_near_to_the_kept_one(count: int, data: st.DataObject) -> None:
    row = st.integers(0, count - 1)
    pairs = {
        (min(pair), max(pair)) for pair in data.draw(st.lists(st.tuples(row, row), max_size=12)) if len(set(pair)) > 1
    }
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    pictures = [(source(f"{each}", width=size),) for each, size in enumerate(sizes)]
    found = near_groups(candidates(pictures, *((*pair, 0.1) for pair in sorted(pairs))))
    grouped = [int(path) for group in found for row in paths(group) for path in row]
    assert len(grouped) == len(set(grouped))
    for group in found:
        kept = int(group.kept.path)
        assert group.size > 1
        assert all(tuple(sorted((kept, int(each.path)))) in pairs for each in group.others)
        assert all(each.width <= group.kept.width for each in group.others)
    chosen = {int(group.kept.path) for group in found}
    left = set(range(count)) - set(grouped)
    assert not any(one in left and other in left | chosen for pair in pairs for one, other in (pair, pair[::-1]))


def dated(path: str, moment: str = "2001-01-01T00:00:00", **facts: Any) -> Source:
    return source(path, taken=moment)._replace(**facts)


@pytest.mark.parametrize(
    ("best", "other", "why"),
    [
        (source("z", 10, 8, coding=RAW), dated("a", width=4000, coding=LOSSLESS), "RAW"),
        (dated("z", coding=LOSSY), source("a", 400, 300, coding=LOSSLESS), "date of the camera"),
        (source("z", 20, 15, coding=LOSSLESS), source("a", 400, 300, 9999, coding=LOSSY), "lossless"),
        (source("z", 20, 15, coding=LOSSY), source("a", 400, 300, 9999, coding=PALETTE), "more colours"),
        (source("z/long name", 40, 31), source("a", 40, 30, 9999), "most pixels"),
        (source("z/long name", 30, 40, 1001), source("a", 40, 30, 1000), "most bytes"),
        (dated("z/long name"), dated("a", "2001-01-01T00:00:01"), "taken first"),
        (source("zz"), source("aaa"), "shortest name"),
        (source("a"), source("b"), "first by name"),
    ],
)
def test_the_rule_of_keeping(best: Source, other: Source, why: str) -> None:
    best, other = (each._replace(pixels="equal") for each in (best, other))
    (group,) = exact_groups(candidates([(best, other)]))
    assert (group.kept, group.why, group.others) == (best, why, (other,))
    assert group.is_exact
    assert group.bytes == other.bytes
    if why != "taken first":  # of different times: no near copies
        for apart in ([(best,), (other,)], [(other,), (best,)]):
            (group,) = near_groups(candidates(apart, (0, 1, 0.25)))
            assert (group.kept, group.why, group.others) == (best, why, (other,))
            assert not group.is_exact


def test_a_chain_is_no_group() -> None:
    """One near to the next, as the signs of an alphabet are."""
    pictures = [(source(f"{row}", 99 - row),) for row in range(6)]
    found = near_groups(candidates(pictures, *((row, row + 1, 0.1) for row in range(5))))
    assert [paths(group) for group in found] == [[["0"], ["1"]], [["2"], ["3"]], [["4"], ["5"]]]


def test_near_copies_come_by_their_distance_to_the_kept_one() -> None:
    twins = (source("best", 99, pixels="p"), source("twin", 99, pixels="p"))
    pictures = [(source("far", 10),), twins, (source("near", 20),), (source("via"),)]
    found = candidates(pictures, (0, 1, 0.5), (1, 2, 0.25), (0, 3, 0.3), turn=2)
    (group,) = near_groups(found)
    assert paths(group) == [["best", "twin"], ["near"], ["far"]]
    assert [copy.distance for copy in group.copies] == [0, 0.25, 0.5]
    assert [copy.turn for copy in group.copies] == [0, 2, 2]
    with pytest.raises(ValueError, match="not to be removed"):
        removable([group])
    (exact,) = exact_groups(found)
    assert removable([exact]) == ["twin"]


def test_files_of_one_picture_with_other_content_are_near_where_the_picture_says_enough() -> None:
    """A digit on a page vanishes in the square that is compared."""
    pages = (source("page 1", pixels="1"), source("page 2", pixels="2"))
    assert exact_groups(candidates([pages])) == []
    assert near_groups(candidates([pages], near=False)) == []
    (group,) = near_groups(candidates([pages]))
    assert paths(group) == [["page 1"], ["page 2"]]


def test_shots_of_different_times_or_of_one_kind_are_no_near_copies() -> None:
    first, second = dated("1.jpg"), dated("2.jpg", "2001-01-01T00:00:01")
    alike = [source(f"{each}.jpg", encoder="camera") for each in (1, 2)]
    for one, other in ((first, second), alike):
        assert near_groups(candidates([(one,), (other,)], (0, 1, 0.1))) == []
        (exact,) = exact_groups(candidates([(one._replace(pixels="p"), other._replace(pixels="p"))]))
        assert exact.size == 2
    assert len(near_groups(candidates([(alike[0],), (alike[1],)], (0, 1, 0.1), turn=3))) == 1
    for facts in ({"width": 20}, {"encoder": "editor"}):
        assert len(near_groups(candidates([(alike[0],), (alike[1]._replace(**facts),)], (0, 1, 0.1)))) == 1


def test_across_two_folders_the_first_is_kept_and_the_second_listed() -> None:
    def same(*names: str) -> tuple[Source, ...]:
        return tuple(source(name, pixels=names[0]) for name in names)

    pictures = [
        same("train/a.jpg", "train/b.jpg", "test/x.jpg"),
        (source("test/a.jpg", 900),),
        same("train/only.jpg", "trained/x.jpg"),
        (source("other/a.jpg"),),
        (source("test"),),
    ]
    found = candidates(pictures, (0, 1, 0.1), (1, 3, 0.1), (2, 3, 0.1), (3, 4, 0.1))
    (exact,) = exact_groups(found, ("train", "test"))
    assert (exact.kept.path, exact.why) == ("train/a.jpg", "in train")
    assert removable([exact]) == ["test/x.jpg"]
    assert removable(exact_groups(found, ("test", "train"))) == ["train/a.jpg", "train/b.jpg"]
    assert exact_groups(found, ("train", "nothing")) == []
    (near,) = near_groups(found, ("train", "test"))
    assert paths(near) == [["test/x.jpg", "train/a.jpg", "train/b.jpg"], ["test/a.jpg"]]
    assert [each.path for each in near.others] == ["test/x.jpg", "test/a.jpg"]
    (near,) = near_groups(found, ("other", "test"))
    assert near.kept.path == "other/a.jpg"
    assert {each.path for each in near.others} == {"test/a.jpg", "test"}


def test_across_two_folders_the_only_date_is_not_given_up() -> None:
    plain, second = (source(name, pixels="p") for name in ("archive/a.jpg", "phone/b.jpg"))
    original = dated("phone/a.jpg", pixels="p")
    assert removable(exact_groups(candidates([(plain, original, second)]), ("archive", "phone"))) == ["phone/b.jpg"]
    assert exact_groups(candidates([(plain, original)]), ("archive", "phone")) == []


def test_a_path_that_is_also_kept_is_never_on_the_list() -> None:
    """An archive's member may have the path of another file."""
    again = source("a.zip/b.jpg", 9, pixels="1")
    pictures = [
        (source("a.zip/b.jpg", 99, pixels="2"), source("c.jpg", 1, pixels="2")),
        (source("big.jpg", 99, pixels="1"), again),
    ]
    found = exact_groups(candidates(pictures))
    assert again in {each for group in found for each in group.others}
    assert removable(found) == ["c.jpg"]
