"""Which pictures stand out, from measures alone."""

from dataclasses import replace

import numpy as np

from stages.quality.picture_flaws import PictureFlaw, PictureMeasures, find_flaws


def measures(count: int = 30) -> PictureMeasures:
    """Pictures that nothing is wrong with."""
    sizes = np.full(count, 1000, np.int64)
    return PictureMeasures(
        brightness=np.full(count, 0.5),
        contrast=np.full(count, 0.8),
        sharpness=np.full(count, 0.5),
        widths=sizes,
        heights=sizes * 3 // 4,
        nearest=np.full(count, 2.0),
        usual=2.0,
    )


def found(given: PictureMeasures) -> dict[str, PictureFlaw]:
    return {each.name: each for each in find_flaws(given)}


def rows(flaw: PictureFlaw) -> list[int]:
    return [each.row for each in flaw.pictures]


def test_usual_pictures_are_in_no_list() -> None:
    lists = found(measures())
    assert list(lists) == ["blurred", "dark", "bright", "flat", "size", "shape", "outlier"]
    assert not any(each.pictures for each in lists.values())


def test_each_list_has_its_pictures_the_worst_first() -> None:
    given = measures()
    given.sharpness[[3, 5]] = 0.15, 0.05
    given.brightness[[7, 8, 9]] = 0.1, 0.01, 0.1
    given.contrast[[7, 8, 9]] = 0.3, 0.01, 0.9  # a dark, a black and a night with lights
    given.brightness[[10, 11]] = 0.95
    given.contrast[[10, 11]] = 0.2, 0.9  # washed out, and a page
    assert given.nearest is not None
    given.nearest[[12, 13, 14]] = 3.5, 9.0, np.nan
    given.widths[15], given.heights[16], given.widths[17] = 10, 3500, 40_000
    lists = found(given)
    assert {name: rows(each) for name, each in lists.items()} == {
        "blurred": [5, 3],
        "dark": [7],
        "bright": [10],
        "flat": [8],
        "size": [15, 17],
        "shape": [15, 17, 16],
        "outlier": [13, 12],
    }
    assert [each.said for each in lists["blurred"].pictures] == ["sharpness 0.05", "sharpness 0.15"]
    assert [each.said for each in lists["size"].pictures] == ["10 × 750 pixels", "40000 × 750 pixels"]
    assert "its median is 0.75 megapixels" in lists["size"].limit
    assert [each.said for each in lists["outlier"].pictures] == ["9 from the nearest", "3.5 from the nearest"]
    assert "whose median is 2.000" in lists["outlier"].limit


def test_flat_and_enlarged_pictures_are_not_blurred_too() -> None:
    given = replace(measures(), side=224)
    given.contrast[2] = given.sharpness[[2, 3, 4]] = 0.0
    given.widths[[3, 4]], given.heights[[3, 4]] = 100, (223, 224)
    lists = found(given)
    assert (rows(lists["flat"]), rows(lists["blurred"])) == ([2], [4])


def test_few_pictures_have_no_usual_size_and_none_without_neighbours_a_usual_distance() -> None:
    few = found(measures(19))
    assert {name for name, each in few.items() if each.note} == {"size", "outlier"}
    assert few["size"].note == "not judged: fewer than 20 pictures have no usual size"
    for distances in (None, np.full(30, np.nan), np.zeros(30)):
        lists = found(replace(measures(), nearest=distances))
        assert [name for name, each in lists.items() if each.note] == ["outlier"]
    none, no_sizes = np.empty(0), np.empty(0, np.int64)
    nothing = PictureMeasures(none, none, none, no_sizes, no_sizes)
    assert not any(each.pictures for each in find_flaws(nothing))
