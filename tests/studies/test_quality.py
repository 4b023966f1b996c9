"""The measurement of quality: the judging, and whole runs, on pictures that are made here."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from stages.backbone.backbones import load_keras
from studies import quality
from studies.sets.framing import FRAMINGS
from studies.sets.labelled import Labelled, Picture
from studies.sets.pooled import POOLINGS, unit
from studies.sets.precision import Judged, by_chance, difference, judge
from studies.sets.ways import DEFAULT, Vectors

pytestmark = pytest.mark.soak

SMALL = replace(DEFAULT, size=32)


def _wide(width: int = 80, height: int = 40) -> Image.Image:
    """Red at the left edge, blue at the right, green between."""
    picture = Image.new("RGB", (width, height), (0, 200, 0))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0, width // 8, height), (200, 0, 0))
    draw.rectangle((width - width // 8, 0, width, height), (0, 0, 200))
    return picture


def test_only_the_crop_loses_the_ends_of_a_wide_picture() -> None:
    for name, frame in FRAMINGS.items():
        left, right = frame(_wide(), 32)[16, [0, -1]]
        lost = tuple(left) == tuple(right) == (0, 200, 0)
        assert lost == (name == "crop"), name


def _labelled(*pictures: tuple[str, str, bool]) -> Labelled:
    blank = Image.new("RGB", (4, 4))
    return Labelled("made", tuple(Picture(blank, label, house, asked) for label, house, asked in pictures))


def test_judging_leaves_out_the_picture_and_its_house() -> None:
    labelled = _labelled(("a", "", True), ("a", "", False), ("b", "", True), ("b", "", False))
    vectors = np.asarray([[0.0], [0.1], [0.25], [5.0]], np.float32)
    judged = judge(vectors, labelled)
    assert judged.first.tolist() == [True, False]
    assert judged.nearest.tolist() == [pytest.approx(1 / 3), pytest.approx(1 / 3)]
    assert judged.average.tolist() == [1.0, pytest.approx(1 / 3)]
    apart = _labelled(("a", "x", True), ("a", "y", True), ("b", "x", True), ("b", "y", True))
    assert judge(vectors, apart).first.tolist() == [True, True, False, True]


def test_differences_that_chance_explains_are_told_from_others() -> None:
    base = Judged(np.arange(100) < 50, np.zeros(100), np.zeros(100))
    much = Judged(np.arange(100) < 80, np.zeros(100), np.zeros(100))
    little = Judged(np.arange(100) < 52, np.zeros(100), np.zeros(100))
    found = difference([much, much], [base, base])
    assert found.mean == pytest.approx(0.3)
    assert found.certain
    assert found.low < found.mean < found.high
    assert by_chance(much, base) == by_chance(base, much) < 1e-6
    assert not difference([little], [base]).certain
    assert by_chance(little, base) == 0.5
    assert by_chance(base, base) == 1.0


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Vectors:
    """Vectors of pictures of 32 pixels, which make and load their backbone once."""
    return Vectors(tmp_path_factory.mktemp("backbones"))


def test_the_average_pooled_of_a_cut_backbone_is_the_backbone(vectors: Vectors) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (40, SMALL.size, SMALL.size, 3), np.uint8)
    pooled = vectors.backbone(SMALL.backbone, SMALL.size)(pictures)
    whole = load_keras(vectors.file(SMALL.backbone, SMALL.size)).predict_on_batch(pictures)
    assert pooled.shape == (len(POOLINGS), *whole.shape)
    assert np.allclose(unit(pooled[0]), whole, atol=1e-5)
    average, most, general = pooled
    assert (average <= general + 1e-5).all()
    assert (general <= most + 1e-5).all()


def test_folders_of_your_own_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for label, colour in (("red things", (200, 0, 0)), ("blue things", (0, 0, 200))):
        (tmp_path / "mine" / label).mkdir(parents=True)
        for width in (20, 40, 60):
            picture = _wide(2 * width, 40)
            ImageDraw.Draw(picture).rectangle((width - 10, 10, width + 10, 30), colour)
            picture.save(tmp_path / "mine" / label / f"{width}.png")
    assert quality.main(["before", "--sets", "--own", str(tmp_path / "mine"), "--rounds", "1"]) == 0
    printed = capsys.readouterr().out
    assert "| mine | 6 | 6 | 2 | 67% |" in printed
    assert re.search(r"^\| 96 px, crop \| \*?\*?[01]\.\d{3}.*\| 27,648 \|$", printed, re.M)


def test_a_factor_is_measured_on_all_sets(capsys: pytest.CaptureFixture[str]) -> None:
    assert quality.main(["before", "framing", "--pictures", "20", "--rounds", "1"]) == 0
    printed = capsys.readouterr().out
    assert all(f"| {name} |" in printed for name in (*quality.SETS, *FRAMINGS, "96 px, crop"))
