"""The measurement of finding copies: the verdicts, and a whole run, on pictures that are made here."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from stages.record.framing import Pixels
from studies import copies
from studies.duplicates import families, finders
from studies.duplicates.families import CHANGES, ORIGINAL, Base, Member
from studies.duplicates.finders import Finder
from studies.duplicates.lookalikes import SCRIPTED
from studies.duplicates.rewritings import EQUAL, UNEQUAL
from studies.duplicates.verdicts import judge

pytestmark = pytest.mark.soak

CHANGE = "mirrored"


def _picture(width: int = 60, height: int = 40, seed: int = 0) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (4, 6, 3), np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def _detailed(seed: int) -> Image.Image:
    """With the detail and the many shades of a photograph."""
    lot = np.random.default_rng(seed)
    layers = [
        np.asarray(Image.fromarray(lot.integers(0, 256, (side, side, 3), np.uint8)).resize((360, 240)), np.float64)
        for side in (3, 6, 12, 24, 48)
    ]
    mixed = np.average(layers, axis=0, weights=[5, 4, 3, 2, 1])
    return Image.fromarray(np.clip((mixed - 128) * 2 + 128, 0, 255).astype(np.uint8))


def test_a_family_is_the_same_every_time_and_drawings_are_copied_in_part(tmp_path: Path) -> None:
    bases = [Base("one", _picture(240, 160), "one"), Base("two", _picture(seed=1), "two", copied=False)]
    written = []
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        written.append(families.write(bases, tmp_path / name))
    first, again = written
    assert [each.path.read_bytes() for each in first] == [each.path.read_bytes() for each in again]
    assert [each.change for each in first if each.family == 0] == [ORIGINAL, *CHANGES]
    assert [each.change for each in first if each.family == 1] == [ORIGINAL]
    hashes = {hashlib.sha256(each.path.read_bytes()).digest() for each in first}
    assert len(hashes) == len(first)
    assert [each.copied for each in families.drawn([_picture()] * 5)] == [True, False, False, False, True]


def _members(*of: tuple[int, str, str]) -> list[Member]:
    return [Member(Path(str(number)), *each) for number, each in enumerate(of)]


MADE = _members((0, ORIGINAL, "a"), (0, CHANGE, "a"), (1, ORIGINAL, "a"), (1, CHANGE, "a"), (2, ORIGINAL, "b"))


def test_pairs_of_two_families_are_wrong() -> None:
    judged = judge(Finder("", frozenset({(0, 1), (0, 2), (1, 4)})), MADE, np.arange(5))
    assert judged.right[CHANGE].tolist() == [True, False]
    assert (judged.recall(CHANGE), judged.recall()) == (0.5, 0.5)
    # In the library of each change there are the originals, of which two are taken for copies; 1 is in one alone.
    assert judged.precision() == pytest.approx(1 / (1 + len(CHANGES) + 1))
    assert judged.mistakes(near=True) > 0
    assert judged.mistakes(near=False) == 250_000  # one of four pairs: 4 with each of the others


def test_a_finder_is_judged_on_some_of_its_pictures() -> None:
    judged = judge(Finder("", frozenset({(0, 1), (2, 3), (1, 4)})), MADE[2:], np.arange(2, 5))
    assert (judged.recall(), judged.precision(), judged.mistakes(near=False)) == (1.0, 1.0, 0.0)


def _colours(pixels: Pixels) -> NDArray[np.float32]:
    """Vectors without a backbone."""
    brightness = pixels.mean(axis=(1, 2)) / 255
    vectors: NDArray[np.float32] = np.concatenate([np.ones((len(pixels), 1)), brightness], axis=1).astype(np.float32)
    return vectors


def test_changed_copies_of_a_detailed_picture_are_found_by_the_products_rule(tmp_path: Path) -> None:
    members = families.write([Base("one", _detailed(0), "one"), Base("two", _detailed(1), "two")], tmp_path)
    found = finders.ours(members, _colours)
    judged = judge(found, members, np.arange(len(members)))
    assert all(judged.recall(each) == 1.0 for each in ("JPEG, quality 90", "scaled to 1/2", CHANGE, "turned by 90°"))
    assert judged.recall("rotated by 10°") == 0.0
    assert judged.precision() == 1.0


def test_only_files_of_equal_pixels_are_exact_copies() -> None:
    rows = {each.split(" | ")[0].strip("| "): each for each in copies.rewritten([_detailed(0)]) if each}
    assert all(rows[name].endswith("| 1 | 0 |") for name in UNEQUAL)
    missed = {name for name in EQUAL if not rows[name].endswith("| 1 | 1 |")}
    assert missed == {"JPEG of 3000 × 2000 → PNG of its pixels"}  # it is compared by its coded data


def test_copies_are_measured_without_imagededup(capsys: pytest.CaptureFixture[str]) -> None:
    assert copies.main(["--alone", "--originals", "8"]) == 0
    printed = capsys.readouterr().out
    assert all(f"| {name} |" in printed for name in (*CHANGES, *SCRIPTED, *EQUAL))
