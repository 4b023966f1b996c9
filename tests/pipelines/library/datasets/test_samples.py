"""The sample pictures are the same in every run, named by their photograph; queries share no pixel with the library."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from pipelines.library.datasets import samples
from pipelines.library.datasets.samples import ASPECT, LIBRARY_SHARE, SIDE, SamplePictures, crop_box, label_of
from stages.backbone.photographs import PHOTOGRAPHS, holds_enough, open_photograph


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> SamplePictures:
    return samples.write_samples(tmp_path_factory.mktemp("samples"))


def test_files_are_named_by_their_photograph(written: SamplePictures) -> None:
    library = sorted(path.name for path in written.library.iterdir())
    queries = sorted(path.name for path in written.queries.iterdir())
    assert (len(library), len(queries)) == (540, 54)
    assert {label_of(name) for name in library} == {label_of(f"queries/{name}") for name in queries} == set(PHOTOGRAPHS)
    assert library[:2] == ["astronaut-01.jpg", "astronaut-02.png"]
    assert queries[0] == "astronaut-1.png"
    assert sorted(samples.library_names()) == [f"{written.library.name}/{name}" for name in library]
    assert written.queries.name == samples.QUERIES


def test_every_file_is_a_picture_of_the_kind_in_its_name(written: SamplePictures) -> None:
    for path in [*written.library.iterdir(), *written.queries.iterdir()]:
        with Image.open(path) as image:
            image.load()
            assert image.format == {".jpg": "JPEG", ".png": "PNG"}[path.suffix]
            assert image.mode in ("L", "RGB")


def test_crops_follow_from_the_photograph_and_the_seed() -> None:
    photograph = open_photograph("coins")
    for cut in (samples.library_crops, samples.query_crops):
        first, again, other = (next(cut(photograph, "coins", seed)) for seed in (0, 0, 1))
        assert (first.size, first.tobytes()) == (again.size, again.tobytes())
        assert first.size != other.size or first.tobytes() != other.tobytes()


def test_a_query_is_found_only_in_its_own_part_of_the_photograph() -> None:
    """Columns numbered by their colour show where a crop was taken."""
    columns = np.broadcast_to(np.arange(250, dtype=np.uint8), (200, 250)).copy()
    columns[::8] = 0  # lines, or there would be nothing to see
    photograph = Image.fromarray(columns)
    edge = math.floor(250 * LIBRARY_SHARE)
    cut = [np.asarray(crop) for crop in samples.library_crops(photograph, "numbers", 0)]
    assert max(crop.max() for crop in cut) < edge
    for number in range(200):
        left, _, right, _ = crop_box((250, 200), edge, 250, Random(number))
        assert edge <= left < right <= 250


def test_no_crop_is_next_to_empty(written: SamplePictures) -> None:
    for path in written.library.glob("*.png"):
        with Image.open(path) as crop:
            assert holds_enough(crop)
    for path in written.queries.iterdir():  # darker and with less contrast, a query still shows something
        with Image.open(path) as crop:
            assert np.ptp(np.asarray(crop.convert("L"))) > 20


def test_black_a_plain_sky_and_a_soft_gradient_hold_nothing() -> None:
    sky = Image.new("RGB", (64, 64), (90, 140, 220))
    assert not holds_enough(sky)
    assert not holds_enough(Image.new("L", (60, 60)))
    assert not holds_enough(Image.linear_gradient("L").point(lambda value: 100 + value / 4))
    grass = open_photograph("grass").convert("RGB")
    sky.paste(grass.crop((0, 0, 64, 8)), (0, 56))  # 1 row of 8
    assert not holds_enough(sky)
    sky.paste(grass.crop((0, 0, 64, 16)), (0, 48))  # 2 rows of 8
    assert holds_enough(sky)


def test_a_photograph_of_nothing_has_no_samples() -> None:
    with pytest.raises(samples.SamplesError, match="of the photograph fog hold nothing"):
        next(samples.library_crops(Image.new("L", (100, 100), 128), "fog", 0))


@given(st.integers(50, 2000), st.integers(50, 2000), st.booleans(), st.integers())
def test_crops_have_the_size_and_aspect_promised(width: int, height: int, of_query: bool, seed: int) -> None:
    edge = math.floor(width * LIBRARY_SHARE)
    columns = (edge, width) if of_query else (0, edge)
    left, upper, right, lower = crop_box((width, height), *columns, Random(seed))
    assert columns[0] <= left < right <= columns[1]
    assert 0 <= upper < lower <= height
    if right - left < columns[1] - columns[0]:  # not cut to its columns
        side = math.sqrt((right - left) * (lower - upper)) / min(width, height)
        slack = 2 / min(width, height)
        assert SIDE[0] - slack <= side <= SIDE[1] + slack
        shorter, longer = sorted((right - left, lower - upper))
        assert (longer - 1) / (shorter + 1) <= ASPECT


def test_a_photograph_missing_from_the_wheel_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(PHOTOGRAPHS, "cat")
    monkeypatch.setitem(PHOTOGRAPHS, "astronaut", "unicorn.png")
    with pytest.raises(samples.SamplesError, match=r"lacks its photograph unicorn\.png.*requirements\.lock"):
        samples.write_samples(tmp_path)
