"""TIFF of any depth, byte order and order of planes is read as its twin in 8 bits, or refused in words: never read
wrongly."""

import itertools
import struct

import numpy as np
import pytest

from stages.decode.decoders import BadPicture
from stages.decode.picture_normaliser import normalise
from stages.record.file_kinds import FileKind
from stages.record.framing import CROP, Framing, Pixels
from tests.stages.decode.drawn_scenes import SIDE, scene

SHORT, LONG = 3, 4
LAYOUTS = list(itertools.product((8, 12, 16), (1, 2, 3, 4), "<>", (False, True)))
READ = {
    *((8, bands, order, False) for bands in (1, 2, 3, 4) for order in "<>"),
    *((8, bands, order, True) for bands in (3, 4) for order in "<>"),
    *((16, bands, order, False) for bands in (1, 3, 4) for order in "<>"),
    (12, 1, "<", False),
}
"""The bits of a sample, the samples, the order of bytes, and whether each lies in a plane of its own."""


def packed(samples: Pixels, bits: int, order: str) -> bytes:
    """Samples of 0 to 255 as whole files have them, at that depth; rows of 12 bits end with whole bytes."""
    wide = np.rint(samples.astype(float) * (2**bits - 1) / 255).astype(np.uint16)
    if bits != 12:
        return bytes(wide.astype(f"{order}u{bits // 8}").tobytes())
    pairs = wide.reshape(-1, 2).astype(np.uint32)
    both = (pairs[:, 0] << 12) | pairs[:, 1]
    return bytes(np.stack([both >> 16, both >> 8, both], -1).astype(np.uint8).tobytes())


def tiff(samples: Pixels, bits: int, order: str = "<", planes: bool = False, largest: int | None = None) -> bytes:
    """A TIFF of uint8 (height, width, bands), the fourth band or the second being opacity, without compression.
    largest: its MaxSampleValue."""
    height, width, bands = samples.shape
    parts = [packed(samples[..., band], bits, order) for band in range(bands)] if planes else []
    parts = parts or [packed(samples.reshape(height, -1), bits, order)]
    tags: list[tuple[int, int, list[int]]] = [
        *((256, LONG, [width]), (257, LONG, [height]), (258, SHORT, [bits] * bands), (259, SHORT, [1])),
        *((262, SHORT, [2 if bands > 2 else 1]), (273, LONG, [0] * len(parts)), (277, SHORT, [bands])),
        *((278, LONG, [height]), (279, LONG, [len(each) for each in parts])),
        *([(281, SHORT, [largest] * bands)] if largest else []),
        (284, SHORT, [2 if planes else 1]),
        *([(338, SHORT, [2])] if bands in (2, 4) else []),
    ]
    behind = 8 + 2 + 12 * len(tags) + 4
    sizes = [struct.calcsize(f"{len(values)}{'H' if kind == SHORT else 'I'}") for _, kind, values in tags]
    strips = behind + sum(size for size in sizes if size > 4)
    tags[5][2][:] = itertools.accumulate([strips, *(len(each) for each in parts[:-1])])
    directory, values_behind = struct.pack(f"{order}H", len(tags)), b""
    for tag, kind, values in tags:
        content = struct.pack(f"{order}{len(values)}{'H' if kind == SHORT else 'I'}", *values)
        place = struct.pack(f"{order}I", behind + len(values_behind))
        directory += struct.pack(f"{order}HHI", tag, kind, len(values))
        directory += content.ljust(4, b"\0") if len(content) <= 4 else place
        values_behind += content if len(content) > 4 else b""
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return mark + struct.pack(f"{order}I", 8) + directory + bytes(4) + values_behind + b"".join(parts)


def read(data: bytes) -> Pixels:
    return normalise(data, FileKind.TIFF, Framing(SIDE, CROP)).framed.pixels


def over_white(samples: Pixels) -> Pixels:
    bands = samples.shape[-1]
    colours = np.repeat(samples[..., :1], 3, -1) if bands < 3 else samples[..., :3]
    opacity = samples[..., -1:] / 255 if bands in (2, 4) else 1.0
    found: Pixels = np.rint(colours * opacity + 255 * (1 - np.asarray(opacity))).astype(np.uint8)
    return found


@pytest.mark.parametrize(("bits", "bands", "order", "planes"), LAYOUTS)
def test_a_layout_is_read_right_or_refused(bits: int, bands: int, order: str, planes: bool) -> None:
    samples = scene(bands=4)[..., [0, 3] if bands == 2 else slice(bands)]
    layout = (bits, bands, order, planes and bands > 1)
    data = tiff(samples, bits, order, planes and bands > 1)
    if layout in READ:
        assert np.abs(read(data).astype(int) - over_white(samples)).max() <= 1
    else:
        with pytest.raises(BadPicture, match="unusual kind: save it as PNG"):
            read(data)


def test_samples_that_use_fewer_bits_than_they_have_are_scaled_or_refused() -> None:
    samples = scene(bands=1)
    deep = np.rint(samples.astype(float) * 4095 / 255).astype(np.uint16)
    data = tiff(samples, 16, largest=4095)
    data = data[: -deep.nbytes] + deep.tobytes()
    assert np.abs(read(data).astype(int) - samples).max() <= 1
    with pytest.raises(BadPicture, match="12 bits in 16: save it with all 16 bits in use"):
        read(tiff(scene(), 16, largest=4095))


@pytest.mark.parametrize("largest", [65_535, 200, 61_234])
def test_the_brightest_sample_is_not_white(largest: int) -> None:
    samples = scene(bands=1)
    assert np.array_equal(read(tiff(samples, 16, largest=largest)), read(tiff(samples, 16)))
