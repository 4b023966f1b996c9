"""The pictures of a pack, from the ends of its file."""

from pathlib import Path

import pytest

from stages.datum.contract import StageError
from stages.files import pack_ends
from stages.files.pack_ends import MAGIC, picture_size
from stages.files.packs import PackPicture, write_pack
from stages.record.framing import PAD, Framing
from stages.record.sources import Source


def pictures(number: int) -> list[PackPicture]:
    return [
        PackPicture(f"{n:064x}", (Source(f"folder/{n} ü.jpg", f"{n:064x}"), Source(f"copy-{n}", "ab" * 32)), (8, 8))
        for n in range(number)
    ]


def found_in(file: Path) -> tuple[list[PackPicture] | None, int]:
    """The pictures in a pack, and the bytes that were read for them."""
    content = file.read_bytes()
    side = pack_ends.side_of(content[:1000])
    assert side is not None
    taken: list[int] = []

    def read(offset: int) -> bytes:
        taken.append(len(content) - offset)
        return content[offset:]

    found = pack_ends.find(read, len(content), side)
    return None if found is None else [PackPicture(*each) for each in found], sum(taken)


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
    assert pack_ends.side_of(b"") is None
    assert pack_ends.side_of(b"\x93NUMPY\x01\x00v\x00{'shape': (1, 2)}") is None
    assert pack_ends.find(lambda offset: b"x" * (5000 - offset), 5000, 8) is None
    assert pack_ends.find(lambda offset: b"", 20, 8) is None


def test_a_rejected_file_is_named() -> None:
    assert pack_ends.source_of(b'{"reason":"r","source":"a/b","stage":"preprocess"}') == "a/b"


def test_lines_of_another_form_are_refused() -> None:
    sources = '{"id":"a","size":[1,1],"sources":%s}'
    for line in (sources % "[{}]", sources % "[1]", '{"id":"a","size":1,"sources":[]}', "[]", "{}", "[" * 5000):
        with pytest.raises(ValueError, match="not the lines of a pack"):
            pack_ends.rows(b'{"fit":"pad"}\n' + line.encode())


def test_a_damaged_pack_has_no_pictures(tmp_path: Path) -> None:
    file = tmp_path / "p.npy"
    write_pack(file, Framing(8, PAD), pictures(2), [bytes(192)] * 2)
    whole = file.read_bytes()
    broken = whole.replace(b'"size":', b'"side":')
    assert pack_ends.find(lambda offset: broken[offset:], len(broken), 8) is None


@pytest.mark.parametrize(
    "shape", [b"(2, 0, 0, 3)", b"(2, -8, -8, 3)", b"(2, 'a', 8, 3)", b"(2, 8, 8, 4)", b"(" * 300, b"-" * 5000 + b"1"]
)
def test_a_header_of_other_pictures_is_refused(tmp_path: Path, shape: bytes) -> None:
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + b", }\n"
    (tmp_path / "p.npy").write_bytes(MAGIC + len(header).to_bytes(2, "little") + header)
    assert pack_ends.side_of((tmp_path / "p.npy").read_bytes()) is None
    with pytest.raises(StageError, match=r"p\.npy cannot be read"):
        picture_size(tmp_path / "p.npy")
