"""The drawn grid: five rows of four columns, the right pictures in the right places, equal bytes every time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from stages.files.packs import Rejection
from stages.quality.entry_answers import EntryAnswers, QueryAnswer, QueryMatch
from stages.record.origin import Origin
from stages.record.sources import Source
from stages.report import result_grid
from stages.report.result_grid import TILE, grid

COLOURS = ("red", "lime", "blue", "yellow", "magenta", "cyan", "orange", "purple")


def jpeg(colour: str) -> bytes:
    buffer = BytesIO()
    Image.new("RGB", (96, 96), colour).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def source(path: str) -> tuple[Source, ...]:
    return (Source(path, "0" * 64),)


def answers(queries: int, found: int, k: int = 3) -> EntryAnswers:
    """Every query is grey, its neighbours have `COLOURS` in order."""
    matches = tuple(QueryMatch(f"m{n}", n / 8, source(f"lib/{n}.jpg"), jpeg(COLOURS[n])) for n in range(found))
    each = tuple(QueryAnswer(f"q{n}", source(f"q/{n}.png"), jpeg("grey"), matches) for n in range(queries))
    return EntryAnswers("garden", k, Origin("a" * 64, "pad"), "euclidean" if found else None, each)


def ids(of: EntryAnswers) -> list[str]:
    return [answer.query for answer in of.answers]


def drawn(of: EntryAnswers) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    with Image.open(BytesIO(grid(of, ids(of)))) as image:
        assert (image.format, image.mode) == ("PNG", "RGB")
        return np.asarray(image)


def tiles(picture: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], colour: str) -> list[tuple[int, int]]:
    """The positions (left, top) of whole tiles of that colour, in reading order."""
    with Image.open(BytesIO(jpeg(colour))) as decoded:
        wanted = np.asarray(decoded.convert("RGB"))[0, 0]
    inside = TILE - 2  # within the outline
    mask = (picture == wanted).all(axis=2)
    starts = mask & ~np.pad(mask, ((1, 0), (1, 0)))[:-1, :-1] & ~np.pad(mask, ((1, 0), (0, 0)))[:-1]
    starts &= ~np.pad(mask, ((0, 0), (1, 0)))[:, :-1]
    corners = [(int(x), int(y)) for y, x in np.argwhere(starts)]
    return [(x - 1, y - 1) for x, y in corners if mask[y : y + inside, x : x + inside].all()]


def test_query_first_then_three_nearest_in_order() -> None:
    picture = drawn(answers(7, 5, k=5))
    rows = tiles(picture, "grey")
    assert len(rows) == 5
    assert len({left for left, _ in rows}) == 1
    columns = [tiles(picture, colour) for colour in COLOURS[:3]]
    for (left, top), *neighbours in zip(rows, *columns, strict=True):
        assert [y for _, y in neighbours] == [top] * 3
        assert left < neighbours[0][0] < neighbours[1][0] < neighbours[2][0]
    assert tiles(picture, COLOURS[3]) == []


@pytest.mark.parametrize("size", [(96, 24), (24, 96), (10, 10), (224, 1), (1, 224)])
def test_pictures_of_any_shape_are_shown_whole_in_the_middle_of_their_tiles(size: tuple[int, int]) -> None:
    buffer = BytesIO()
    Image.new("RGB", size, "red").save(buffer, "PNG")
    of = answers(1, 1, k=1)
    shaped = replace(of, answers=(replace(of.answers[0], thumbnail=buffer.getvalue()),))
    picture = drawn(shaped)
    red = np.argwhere((picture == (255, 0, 0)).all(axis=2))
    (top, left), (bottom, right) = red.min(axis=0), red.max(axis=0) + 1
    inside = TILE - 2  # within the outline
    assert max(right - left, bottom - top) == inside
    assert right - left == min(inside, max(1, round(TILE * size[0] / max(size))))
    assert bottom - top == min(inside, max(1, round(TILE * size[1] / max(size))))
    assert abs((left + right) / 2 - (result_grid.MARGIN + TILE / 2)) <= 1


def test_fewer_queries_make_a_lower_sheet() -> None:
    heights = [drawn(answers(n, 3)).shape[0] for n in range(7)]
    assert heights[1] < heights[2] < heights[5] == heights[6]
    assert len({drawn(answers(n, 3)).shape[1] for n in (0, 1, 5)}) == 1


def test_the_seed_determines_the_rows() -> None:
    of = answers(7, 3)
    named = replace(of, answers=tuple(replace(a, thumbnail=jpeg(c)) for a, c in zip(of.answers, COLOURS, strict=False)))
    with Image.open(BytesIO(grid(named, ["q4", "q6", "q3", "q5", "q1", "q2"]))) as image:
        picture = np.asarray(image)
    left = min(x for x, _ in tiles(picture, "magenta"))
    order = [next(y for x, y in tiles(picture, COLOURS[n]) if x == left) for n in (4, 6, 3, 5, 1)]
    assert order == sorted(order)


def test_equal_answers_give_equal_bytes() -> None:
    of = answers(3, 3)
    assert grid(of, ids(of)) == grid(replace(of), ids(of))
    assert grid(of, ids(of)) != grid(replace(of, entry="meadow"), ids(of))


def test_no_metadata_in_the_file() -> None:
    of = answers(1, 3)
    with Image.open(BytesIO(grid(of, ids(of)))) as image:
        assert image.info == {}


@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_k_may_be_smaller_than_the_columns(k: int) -> None:
    picture = drawn(answers(1, min(k, 8), k=k))
    assert sum(len(tiles(picture, colour)) for colour in COLOURS) == min(k, 3)


def hard_cases() -> Iterator[EntryAnswers]:
    nasty = source("x/" + "写真 <b>\u202e\x00\udcff" * 60)
    one = answers(1, 3).answers[0]
    yield EntryAnswers("empty entry", 3, None, None, (), ())
    yield EntryAnswers(
        "nothing good", 3, Origin("m", "pad"), None, (), (Rejection("写" * 90, "preprocess", "word " * 200),) * 40
    )
    yield answers(5, 0)
    yield answers(2, 1)
    yield EntryAnswers("写" * 200, 3, Origin("m", "pad"), "cosine", (replace(one, sources=nasty, thumbnail=None),))
    yield EntryAnswers("many names", 3, Origin("m", "pad"), "cosine", (replace(one, sources=nasty * 5),))
    yield EntryAnswers("unnamed", 3, Origin("m", "pad"), "cosine", (replace(one, sources=()),))
    yield EntryAnswers(
        "no thumbnails", 3, Origin("m", "pad"), "cosine", (replace(one, matches=(QueryMatch("m", 0, (), None),)),)
    )


@pytest.mark.parametrize("of", list(hard_cases()), ids=lambda of: of.entry[:16].encode("ascii", "replace").decode())
def test_every_case_fits_on_its_sheet(of: EntryAnswers) -> None:
    picture = drawn(of)
    edge = np.concatenate([picture[:4].reshape(-1, 3), picture[-4:].reshape(-1, 3), picture[:, :4].reshape(-1, 3)])
    assert (edge == 255).all()
    assert (picture[:, -result_grid.PANEL :] == 255).all()
    assert (picture != 255).any()
