"""The study of MNIST from its files to the table, on few drawn digits."""

import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from studies.mnist import __main__ as study, digits

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def write(directory: Path, part: str, count: int) -> None:
    """So many drawn digits with their labels, at places of their own."""
    lot = np.random.default_rng(count)
    own = np.arange(count) % 10
    pictures = np.zeros((count, digits.SIDE, digits.SIDE), np.uint8)
    for at, digit in enumerate(own):
        image = Image.fromarray(pictures[at])
        ImageDraw.Draw(image).text(tuple(lot.uniform(6, 12, 2)), str(digit), fill=255)
        pictures[at] = np.asarray(image)
    sizes = struct.pack(">3I", *pictures.shape)
    (directory / f"{part}-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03" + sizes + pictures.tobytes())
    (directory / f"{part}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + sizes[:4] + own.astype(np.uint8).tobytes())


def test_the_table_has_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, digits.TRAIN, 400)
    write(tmp_path, digits.TEST, 40)
    few = ("--pictures", "300", "--test", "32", "--epochs", "2", "--filters", "4", "8", "--digits", str(tmp_path))
    assert study.main(few) == 0
    printed = capsys.readouterr().out
    for what in ("of 32", "plain Keras", "first training of 300", "its datums  ", "preprocess 1, features 1"):
        assert what in printed, printed


def test_a_part_is_written_with_its_labels(tmp_path: Path) -> None:
    write(tmp_path, digits.TRAIN, 30)
    written = digits.write_part(tmp_path, digits.TRAIN, 20, tmp_path / "part")
    assert written.stat().st_size == 16 + 20 * digits.SIDE**2
    np.testing.assert_array_equal(
        digits.pictures(tmp_path / "part", digits.TRAIN), digits.pictures(tmp_path, digits.TRAIN)[:20]
    )
    assert digits.labels(tmp_path / "part", digits.TRAIN).tolist() == [at % 10 for at in range(20)]
