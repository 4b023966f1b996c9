"""The pictures of a pack, from the end of its file."""

from pathlib import Path

import pytest

from stages import packtails
from stages.framing import PAD, Framing
from stages.packs import Picture, write_pack
from stages.sources import Source


def pictures(number: int) -> list[Picture]:
    return [
        Picture(f"{n:064x}", (Source(f"folder/{n} ü.jpg", f"{n:064x}"), Source(f"copy-{n}", "ab" * 32)), (8, 8))
        for n in range(number)
    ]


def found_in(file: Path) -> tuple[list[Picture] | None, int]:
    """The pictures in a pack, and the bytes that were read for them."""
    content = file.read_bytes()
    side = packtails.side_of(content[:1000])
    assert side is not None
    taken: list[int] = []

    def read(offset: int) -> bytes:
        taken.append(len(content) - offset)
        return content[offset:]

    found = packtails.find(read, len(content), side)
    return None if found is None else [Picture(*each) for each in found], sum(taken)


@pytest.mark.parametrize("side", [8, 224])
@pytest.mark.parametrize("number", [0, 1, 2, 400])
def test_the_pictures_are_read_without_most_of_the_pixels(tmp_path: Path, number: int, side: int) -> None:
    file = tmp_path / "p.npy"
    row = (b'{"fit":"pad"}\n' * side * side * 3)[: 3 * side * side]  # pixels may look like anything
    write_pack(file, Framing(side, PAD), pictures(number), [row] * number)
    found, taken = found_in(file)
    assert found == pictures(number)
    assert taken < 0.1 * number * len(row) + 2 * len(row) + 1000 * number


def test_another_file_is_not_a_pack(tmp_path: Path) -> None:
    assert packtails.side_of(b"") is None
    assert packtails.side_of(b"\x93NUMPY\x01\x00v\x00{'shape': (1, 2)}") is None
    assert packtails.find(lambda offset: b"x" * (5000 - offset), 5000, 8) is None
    assert packtails.find(lambda offset: b"", 20, 8) is None


def test_a_rejected_file_is_named() -> None:
    assert packtails.source_of(b'{"reason":"r","source":"a/b","stage":"preprocess"}') == "a/b"
