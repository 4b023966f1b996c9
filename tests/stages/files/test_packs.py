import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from stages.datum.contract import StageError
from stages.files import coded_pictures
from stages.files.packs import (
    PackPicture,
    Rejection,
    parse_pack,
    read_pack,
    read_rejections,
    write_pack,
    write_rejections,
)
from stages.record.framing import FITS, Framing, unpadded
from stages.record.sources import Source

ONE = Framing(1, "pad")
DOT = coded_pictures.encode(np.zeros((1, 1, 3), np.uint8))
NAME = st.text(st.characters(exclude_categories=()))  # including lone surrogates, which file names may have
NOWHERE = {name: st.none() for name in ("latitude", "longitude")}
SOURCES = st.lists(st.builds(Source, NAME, st.just("0" * 64), **NOWHERE), min_size=1, max_size=3).map(
    lambda each: tuple(sorted(each))
)


@given(st.lists(SOURCES, max_size=4), st.sampled_from(FITS))
def test_a_pack_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, sources: list[tuple[Source, ...]], fit: str
) -> None:
    pixels = [np.random.default_rng(row).integers(0, 256, (1 + row, 4, 3), np.uint8) for row in range(len(sources))]
    coded = list(map(coded_pictures.encode, pixels))
    pictures = [
        PackPicture(f"{number:064x}", each, (4, 1 + number), 0, number, coded_size=len(coded[number]))
        for number, each in enumerate(sources)
    ]
    path = tmp_path_factory.getbasetemp() / "pack" / "0123.pack"
    write_pack(path, Framing(4, fit), pictures, coded)
    for pack in (read_pack(path), parse_pack(path.read_bytes(), "a pack")):
        assert pack.pictures == tuple(pictures)
        assert pack.framing == Framing(4, fit)
        for (picture, framed), each, row in zip(pack.framed(), coded, range(4), strict=False):
            assert picture == pictures[row]
            assert framed.size == picture.size
            assert np.array_equal(framed.pixels, coded_pictures.decode(each, picture.size, 4).pixels)
            assert unpadded(framed).shape == pixels[row].shape


def test_the_file_has_the_documented_form(tmp_path: Path) -> None:
    facts = "2019-08-04T16:30:12", "lossy", "0123abcd", "ef" * 16, "Canon EOS 5D", "EF50mm", None, -0.5, "JPEG"
    source = Source("a/é.jpg", "cd" * 32, 40, 30, 999, *facts)
    picture = PackPicture("ab" * 32, (source,), (1, 1), 0xFE, 70, 0.25, 0.5, 1.0, "red", 3)
    line = (
        b'{"brightness":0.25,"coded_size":3,"colour":"red","contrast":0.5,"id":"' + b"ab" * 32 + b'",'
        b'"perceptual_hash":"00000000000000fe","sharpness":1.0,"size":[1,1],'
        b'"sources":[{"bytes":999,"camera":"Canon EOS 5D","coding":"lossy","encoder":"0123abcd",'
        b'"format":"JPEG","height":30,'
        b'"latitude":null,"lens":"EF50mm","longitude":-0.5,'
        b'"path":"a/\\u00e9.jpg","pixels":"' + b"ef" * 16 + b'","sha256":"' + b"cd" * 32 + b'",'
        b'"taken":"2019-08-04T16:30:12","width":40}],"thumbnail_size":70}\n'
    )
    write_pack(tmp_path / "deep" / "src.pack", ONE, [picture], [b"\1\2\3"])
    head = b'{"fit":"pad","side":1,"table":%d}\n' % len(line)
    assert (tmp_path / "deep" / "src.pack").read_bytes() == head + line + b"\1\2\3"


def test_inconsistent_packs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pack"
    write_pack(path, ONE, [PackPicture("a" * 64, (), (1, 1), coded_size=len(DOT))], [DOT])
    whole = path.read_bytes()
    assert [framed.pixels.tolist() for _, framed in read_pack(path).framed()] == [[[[0, 0, 0]]]]
    former = b"\x93NUMPY\x01\x00" + whole
    for broken in (whole[:10], whole[:100], whole[:-4], whole + b"{}\n", whole.replace(b"pad", b"pat"), former, b""):
        path.write_bytes(broken)
        with pytest.raises(StageError, match=r"the pack x.pack cannot be read .*deploy --reprocess preprocess"):
            read_pack(path)
        with pytest.raises(StageError, match=r"the pack x.pack cannot be read"):
            parse_pack(broken, "x.pack")
    sized = b'"thumbnail_size":0'
    for size in (b"-1", b"7.0", b"tru", b"nul", b'"7"'):
        path.write_bytes(whole.replace(sized + b"}", sized[: -1 - len(size) + 1] + size + b"}"))
        with pytest.raises(StageError, match=r"cannot be read"):
            read_pack(path)


def test_a_damaged_picture_is_refused_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "x.pack"
    pictures = [PackPicture(id * 64, (), (1, 1), coded_size=len(DOT)) for id in "abc"]
    write_pack(path, ONE, pictures, [DOT, bytes(len(DOT)), DOT])
    pack = read_pack(path)
    for row in (0, 2):
        assert pack.square(row).pixels.shape == (1, 1, 3)
    with pytest.raises(StageError, match="the pack x.pack cannot be read"):
        pack.square(1)


@given(st.lists(st.builds(Rejection, NAME, st.just("preprocess"), NAME), max_size=4))
def test_rejections_come_back_sorted_and_once(tmp_path_factory: pytest.TempPathFactory, given: list[Rejection]) -> None:
    path = tmp_path_factory.getbasetemp() / "rejected" / "x.jsonl"
    write_rejections(path, given + given)
    assert read_rejections(path) == sorted(set(given))
    assert all(list(json.loads(line)) == ["reason", "source", "stage"] for line in path.read_text().splitlines())


def test_other_files_are_not_read_as_rejections(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("[]\n")
    with pytest.raises(StageError, match="not a list of rejections"):
        read_rejections(path)
