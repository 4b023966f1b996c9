"""The measurement of finding copies: families, verdicts, thresholds and tables, on pictures that are made here."""

import hashlib
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL import Image

from benchmarks import copies, families, finders
from benchmarks.families import CHANGES, ORIGINAL, Base, Member
from benchmarks.finders import HASHES, VECTORS, Finder
from benchmarks.verdicts import DRAWINGS, PHOTOGRAPHS, chosen, judge, looked_at

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
    return Finder(VECTORS, None, np.asarray(codes, np.float32)[:, None], root=True)


MADE = _members((0, ORIGINAL, "a"), (0, CHANGE, "a"), (1, ORIGINAL, "a"), (1, CHANGE, "a"), (2, ORIGINAL, "b"))
ALL = np.arange(len(MADE))


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
    worse = judge(_finder(0.0, 0.1, 0.15, 5.2, 9.0), MADE, np.arange(5))
    grid = [0.0, 0.1, 0.2, 0.3, 3.0, 5.0, 9.0]
    assert chosen({PHOTOGRAPHS: judged}, grid) == 3.0
    assert chosen({PHOTOGRAPHS: worse}, grid) == 0.0
    assert chosen({DRAWINGS: judged, PHOTOGRAPHS: worse}, grid) == 0.0


def test_hashes_count_within_a_distance_only() -> None:
    vectors = judge(_finder(0.0, 0.1, 1.0, 1.5, 1.25), MADE, np.arange(5))
    hashes = judge(Finder(HASHES, None, np.asarray([[0, 0], [1, 0], [1, 1], [1, 1], [0, 0]], np.float32)), MADE, ALL)
    both = hashes.within(vectors, 0.2)
    assert both.right[CHANGE].tolist() == [1, np.inf]
    assert (hashes.recall(0), hashes.recall(1), both.recall(0), both.recall(1)) == (0.5, 1.0, 0.0, 0.5)
    assert hashes.mistakes(0, near=False) == 250_000  # one of four: the pictures of the families 0 and 1 from family 2
    assert both.mistakes(64, near=False) == 0


def test_few_unrelated_photographs_are_within_the_distance() -> None:
    judged = judge(_finder(0.0, 0.1, 1.0, 1.5, 2.25), MADE, ALL)
    assert looked_at(judged, [0.2, 0.5, 0.7, 0.8, 1.3]) == 0.7
    assert looked_at(judged, [1.3]) == 0.0


def test_distances_of_hashes_are_the_numbers_of_different_bits() -> None:
    said = {"hashes": {"a": "00ff", "b": "00fe", "c": "ff00"}, "pairs": [["b", "a"]]}
    finder = finders._finder("PHash", said, [Path("a"), Path("b"), Path("c")])
    assert finder.distances(np.arange(3)).tolist() == [[0, 1, 16], [1, 0, 15], [16, 15, 0]]
    assert (finder.default, finder.root) == (10, False)


def test_a_method_that_tells_pairs_alone_is_judged_by_them() -> None:
    said = {"hashes": None, "pairs": [["b", "a"]]}
    finder = finders._finder("CNN", said, [Path("a"), Path("b"), Path("c")])
    assert (finder.distances(np.arange(3)) <= 0).tolist() == [
        [False, True, False],
        [True, False, False],
        [False, False, False],
    ]


def test_tables_have_a_row_for_each_change_and_threshold() -> None:
    wholes = [f"whole {number}" for number in range(24)]
    members = _members(*((n, change, whole) for n, whole in enumerate(wholes) for change in (ORIGINAL, *CHANGES)))
    codes = np.asarray([[each.family + 0.001 * (each.change != ORIGINAL)] for each in members], np.float32)
    bits = np.random.default_rng(0).integers(0, 2, (len(wholes), 64)).astype(np.float32)
    hashes = bits[[each.family for each in members]]
    found = [
        Finder(VECTORS, None, codes, root=True),
        Finder(HASHES, None, hashes),
        Finder("PHash", 10.0, hashes),
        Finder("CNN", 0.0, None, frozenset()),
    ]
    sets = [PHOTOGRAPHS if each.family % 2 else DRAWINGS for each in members]
    lines = list(copies.tables(found, members, sets, (0.5, 8.0)))
    assert f"| {CHANGE} | 0.00 | 0 | 1.00 | 1.00 | 1.00 | 1.00 | 0.00 |" in lines
    assert "| lookalike | 0.5 and 8 | 1.000 | 1.000 | 1.000 | 1.000 | 0 | 0 | 0 |" in lines
    assert any(line.startswith("| PHash | 10, its default |") for line in lines)
    assert any(re.match(r"\| PHash \| \d+, chosen \|", line) for line in lines)
    assert any(line.startswith("| 0.2 | 0 | 1.00, 1.000; 1.00 |") for line in lines)
    assert re.search(r"By the rule: THRESHOLD=\d\.\d HASH_BITS=\d+", lines[-1])


def test_the_pipelines_own_parameters_are_measured() -> None:
    distance, bits = copies.parameters()
    assert 0 < distance < 2
    assert 0 < bits <= 64


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
