"""The table of a pack, read without its pictures."""

from pathlib import Path

import numpy as np
import pytest

from stages.datum.contract import StageError
from stages.files import pack_tables
from stages.files.pack_tables import PackTable
from stages.files.packs import PackPicture, write_pack
from stages.record.framing import PAD, Framing
from stages.record.sources import Source
from tests.stages.made_packs import former_pack

_CODED = b'{"fit":"pad"}\n' * 1000  # a picture may look like anything


def pictures(number: int) -> list[PackPicture]:
    return [
        PackPicture(
            f"{n:064x}",
            (Source(f"folder/{n} ü.jpg", f"{n:064x}"), Source(f"copy-{n}", "ab" * 32)),
            (8, 8),
            coded_size=len(_CODED) + n,
        )
        for n in range(number)
    ]


def read(content: bytes) -> tuple[PackTable, int]:
    """The table of a pack, and the bytes that were read for it."""
    taken: list[int] = []

    def piece(begin: int, most: int) -> bytes:
        found = content[begin : begin + most] if most else content[begin:]
        taken.append(len(found))
        return found

    return pack_tables.read_table(piece), sum(taken)


def write(path: Path, members: list[PackPicture], side: int = 224) -> bytes:
    write_pack(path, Framing(side, PAD), members, [_CODED + bytes(n) for n in range(len(members))])
    return path.read_bytes()


@pytest.mark.parametrize("number", [0, 1, 2, 400])
def test_the_pictures_and_their_places_are_read_from_the_front(tmp_path: Path, number: int) -> None:
    members = pictures(number)
    content = write(tmp_path / "p.pack", members)
    table, taken = read(content)
    assert (table.side, table.raw) == (224, False)
    assert [(row.id, row.sources, row.size) for row in table.rows] == [(p.id, p.sources, p.size) for p in members]
    assert [content[row.begin : row.begin + row.length] for row in table.rows] == [
        _CODED + bytes(n) for n in range(number)
    ]
    assert taken < pack_tables.HEAD + 1000 * number
    assert pack_tables.picture_side(tmp_path / "p.pack") == 224


@pytest.mark.parametrize("number", [0, 1, 3])
def test_former_packs_are_read_from_their_end(number: int) -> None:
    """Of commits before preprocess-16: an array of NumPy's and the lines behind it."""
    pixels = np.random.default_rng(0).integers(0, 256, (number, 8, 8, 3), np.uint8)
    content = former_pack(pictures(number), pixels)
    table, _ = read(content)
    assert (table.side, table.raw) == (8, True)
    assert [(row.id, row.sources) for row in table.rows] == [(p.id, p.sources) for p in pictures(number)]
    for row, square in zip(table.rows, pixels, strict=True):
        assert content[row.begin : row.begin + row.length] == square.tobytes()


def test_a_pack_of_an_older_version_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "b.npy").write_bytes(b"")
    write(tmp_path / "a.pack", pictures(1))
    with pytest.raises(StageError, match=r"pack b\.npy: `lookalike upgrade`.*deploy --reprocess preprocess$"):
        pack_tables.paths(tmp_path)
    (tmp_path / "b.npy").unlink()
    assert pack_tables.paths(tmp_path) == [tmp_path / "a.pack"]


@pytest.mark.parametrize(
    "head",
    [
        *(b"", b"\n", b"[]\n", b"[" * 5000, b'{"fit":"pad","side":8,"table":0}', b'{"fit":1,"side":8,"table":0}\n'),
        *(b'{"fit":"pad","side":%s,"table":0}\n' % side for side in (b"0", b"true", b"8.5", b"1e99", b"99999999")),
        *(b'{"fit":"pad","side":8,"table":%s}\n' % size for size in (b"-1", b"null", b"999")),
        *(b"\x93NUMPY\x01\x00" + shape for shape in (b"", b"'shape': (2, 0, 0, 3)", b"'shape': (2, 8, 8, 4)")),
    ],
)
def test_another_file_is_not_a_pack(tmp_path: Path, head: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(head)
    if b'"table":999' not in head:
        (tmp_path / "p.pack").write_bytes(head)
        with pytest.raises(StageError, match=r"the pack p\.pack cannot be read .*deploy --reprocess preprocess"):
            pack_tables.picture_side(tmp_path / "p.pack")


def test_lines_of_another_form_are_refused() -> None:
    sources = '{"coded_size":1,"id":"a","size":[1,1],"sources":%s}'
    for line in (sources % "[{}]", sources % "[1]", '{"id":"a","size":1,"sources":[]}', "[]", "{}", "[" * 5000):
        head = b'{"fit":"pad","side":8,"table":%d}\n' % len(line)
        with pytest.raises(ValueError, match="not the lines of a pack"):
            read(head + line.encode())


def test_a_rejected_file_is_named() -> None:
    assert pack_tables.source_of(b'{"reason":"r","source":"a/b","stage":"preprocess"}') == "a/b"
