"""The sets of pictures that look alike and are not copies: those that are drawn here, always, and those that are read
from the wheels with pictures, if they are unpacked."""

import hashlib
import os

import pytest
from PIL import Image

from studies.duplicates import lookalikes
from studies.kit import wheels

pytestmark = pytest.mark.soak

QUICK = ("coins", "flags with a cross", "letters", "line charts, one series", "chess, one move", "go, one move")
WHEELS = wheels.place(os.environ)
needs_wheels = pytest.mark.skipif(
    not WHEELS.exists(), reason="the wheels with pictures are not unpacked: make study NAME=quality"
)


def _marks(pictures: tuple[Image.Image, ...]) -> list[tuple[str, tuple[int, int], str]]:
    return [(each.mode, each.size, hashlib.sha256(each.tobytes()).hexdigest()) for each in pictures]


@pytest.mark.parametrize("name", QUICK)
def test_a_scripted_set_is_large_rgb_without_equal_pictures_and_the_same_again(name: str) -> None:
    drawn = lookalikes.scripted(name)
    marks = _marks(drawn.pictures)
    assert 30 <= len(marks) <= 300
    assert {mode for mode, _, _ in marks} == {"RGB"}
    assert len(set(marks)) == len(marks)
    assert _marks(lookalikes.scripted(name).pictures) == marks


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
