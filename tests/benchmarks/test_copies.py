"""The measurement of finding copies: families, verdicts, thresholds and tables, on pictures that are made here."""

import hashlib
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL import Image

from benchmarks import copies, families, finders
from benchmarks.copies import judge
from benchmarks.families import CHANGES, ORIGINAL, Base, Member
from benchmarks.finders import OURS, Finder

CHANGE = "mirrored"


def _picture(width: int = 60, height: int = 40, seed: int = 0) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (4, 6, 3), np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("size", [(60, 40), (40, 60), (3, 2), (1, 1)])
def test_changes_make_pictures_of_any_picture(name: str, size: tuple[int, int]) -> None:
    picture = _picture(*size)
    before = picture.tobytes()
    made = CHANGES[name](picture, Random(0))
    assert min(made.size) >= 1
    assert made.mode in ("RGB", "P")
    assert picture.tobytes() == before


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


def test_parts_of_a_photograph_share_no_pixels() -> None:
    whole = _picture(120, 80)
    parts = list(families.tiles({"whole": whole}))
    assert {each.whole for each in parts} == {"whole"}
    together = Image.new("RGB", whole.size)
    for number, each in enumerate(parts):
        together.paste(each.image, (number % 2 * 60, number // 2 * 40))
    assert together.tobytes() == whole.tobytes()
    assert not list(families.tiles({"black": Image.new("RGB", (80, 80))}))


def _members(*of: tuple[int, str, str]) -> list[Member]:
    return [Member(Path(str(number)), *each) for number, each in enumerate(of)]


def _finder(*codes: float) -> Finder:
    return Finder(OURS, 1.0, None, np.asarray(codes, np.float32)[:, None], root=True)


MADE = _members((0, ORIGINAL, "a"), (0, CHANGE, "a"), (1, ORIGINAL, "a"), (1, CHANGE, "a"), (2, ORIGINAL, "b"))


def test_a_copy_is_found_within_the_threshold_and_other_pairs_are_wrong() -> None:
    judged = judge(_finder(0.0, 0.1, 1.0, 1.5, 1.25), MADE, np.arange(5))
    assert judged.right[CHANGE].tolist() == [pytest.approx(0.1), pytest.approx(0.5)]
    assert (judged.recall(0.2, CHANGE), judged.recall(0.5, CHANGE), judged.recall(0.5)) == (0.5, 1.0, 1.0)
    assert judged.precision(0.2) == 1.0
    others = len(CHANGES) - 1  # changes for which there are the originals alone, of which 1 and 2 are near
    assert judged.precision(0.5) == pytest.approx(2 / (2 + 2 + others))
    assert judged.mistakes(0.5, near=True) == 0.0
    assert judged.mistakes(0.5, near=False) > 0.0


def test_the_threshold_is_the_largest_before_precision_is_lost() -> None:
    judged = judge(_finder(0.0, 0.1, 5.0, 5.2, 9.0), MADE, np.arange(5))
    assert copies.chosen(judged, [0.0, 0.1, 0.2, 0.3, 3.0, 5.0, 9.0]) == 3.0
    worse = judge(_finder(0.0, 0.1, 0.15, 5.2, 9.0), MADE, np.arange(5))
    assert copies.chosen(worse, [0.0, 0.1, 0.2, 0.3]) == 0.0


def test_distances_of_hashes_are_the_numbers_of_different_bits() -> None:
    said = {"hashes": {"a": "00ff", "b": "00fe", "c": "ff00"}, "pairs": [["b", "a"]], "encoding": 1.0, "finding": 2.0}
    finder = finders._finder("PHash", said, [Path("a"), Path("b"), Path("c")])
    assert finder.distances(np.arange(3)).tolist() == [[0, 1, 16], [1, 0, 15], [16, 15, 0]]
    assert (finder.default, finder.seconds, finder.root) == (10, 3.0, False)


def test_a_method_that_tells_pairs_alone_is_judged_by_them() -> None:
    said = {"hashes": None, "pairs": [["b", "a"]], "encoding": 1.0, "finding": 2.0}
    finder = finders._finder("CNN", said, [Path("a"), Path("b"), Path("c")])
    assert (finder.distances(np.arange(3)) <= 0).tolist() == [
        [False, True, False],
        [True, False, False],
        [False, False, False],
    ]


def test_tables_have_a_row_for_each_change_and_threshold() -> None:
    wholes = [f"whole {number}" for number in range(6)]
    members = _members(*((n, change, whole) for n, whole in enumerate(wholes) for change in (ORIGINAL, *CHANGES)))
    codes = [float(each.family) + 0.001 * (each.change != ORIGINAL) for each in members]
    hashes = Finder("PHash", 1.0, 10.0, np.asarray(codes, np.float32)[:, None])
    sets = ["photographs" if each.family % 2 else "drawings" for each in members]
    lines = list(copies.tables([_finder(*codes), hashes], members, sets))
    assert f"| {CHANGE} | 0.00 | 1.00 | 1.00 |" in lines
    assert any(re.match(r"\| lookalike \| [\d.]+, chosen \| 1.000 \|", line) for line in lines)
    assert any(line.startswith("| PHash | 10, its default |") for line in lines)
    assert any(line.startswith("| 0.45 | 1.000 | 1.000 |") for line in lines)


def test_the_lock_of_imagededup_pins_every_package_with_hashes() -> None:
    text = finders.LOCK.read_text()
    pinned = re.findall(r"^([a-z0-9.-]+)==\S+.* \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.M)
    assert "imagededup" in {name for name, _ in pinned}
    assert len(pinned) == len(re.findall(r"^\S", text, re.M))


@pytest.mark.soak
def test_copies_are_measured_without_imagededup(capsys: pytest.CaptureFixture[str]) -> None:
    assert copies.main(["--alone", "--originals", "8"]) == 0
    printed = capsys.readouterr().out
    assert all(f"| {name} |" in printed for name in CHANGES)
