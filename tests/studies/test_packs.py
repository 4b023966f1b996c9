"""The measurement of coders for the pictures in packs, on pictures that are made here."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from stages.record.framing import PAD, Framing
from studies import packs

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("name", packs.CODERS)
def test_a_coder_gives_back_the_picture_it_was_given(name: str) -> None:
    framing, ramp = Framing(64, PAD), np.arange(64 * 40 * 3, dtype=np.uint8).reshape(40, 64, 3)
    squares = [framing.frame(ramp), framing.frame(np.full((64, 20, 3), 90, np.uint8))]
    found = packs.coded_by(packs.CODERS[name], squares)  # which itself sees that exact ones are exact
    assert found.pixels.shape == (2, 64, 64, 3)
    assert (found.sizes > 0).all()
    assert np.abs(found.pixels[1].astype(int) - squares[1].pixels).max() <= 2


@pytest.mark.timeout(600)
def test_every_coder_gives_the_same_without_vector_instructions() -> None:
    names = [packs.OURS, "WebP lossless, fastest", "JPEG 94"]
    said = list(packs.without_instructions(names))
    assert [line.partition(" bytes")[0] for line in said] == [f"{name}: the same" for name in names]


def test_folders_of_your_own_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for label in ("red", "blue"):
        (tmp_path / "mine" / label).mkdir(parents=True)
        for width in (40, 60, 80):
            picture = Image.new("RGB", (100, 60), "white")
            ImageDraw.Draw(picture).ellipse((5, 5, width, 50), label)
            picture.save(tmp_path / "mine" / label / f"{width}.png")
    assert packs.main(["PNG", packs.OURS, "--sets", "--own", str(tmp_path / "mine")]) == 0
    printed = capsys.readouterr().out
    sizes, precision, changes = printed.split("\n\n")[1:]
    assert [line.split("  ")[0] for line in sizes.splitlines()] == ["bytes a picture", "PNG", packs.OURS]
    assert [line.split("  ")[0] for line in precision.splitlines()] == ["precision@1", "raw", packs.OURS]
    assert "0.000, 0.000" in changes  # drawings are lossless
