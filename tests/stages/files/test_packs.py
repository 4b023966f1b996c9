import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from stages.datum.contract import StageError
from stages.files.packs import (
    PackPicture,
    Rejection,
    parse_pack,
    read_pack,
    read_rejections,
    write_pack,
    write_rejections,
)
from stages.record.framing import FITS, Framing
from stages.record.sources import Source

ONE = Framing(1, "pad")
NAME = st.text(st.characters(exclude_categories=()))  # including lone surrogates, which file names may have
NOWHERE = {name: st.none() for name in ("latitude", "longitude")}
SOURCES = st.lists(st.builds(Source, NAME, st.just("0" * 64), **NOWHERE), min_size=1, max_size=3).map(
    lambda each: tuple(sorted(each))
)


@given(st.lists(SOURCES, max_size=4), st.sampled_from(FITS))
def test_a_pack_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, sources: list[tuple[Source, ...]], fit: str
) -> None:
    pictures = [PackPicture(f"{number:064x}", each, (4, 1 + number), 0, number) for number, each in enumerate(sources)]
    pixels = np.random.default_rng(0).integers(0, 256, (len(pictures), 4, 4, 3), dtype=np.uint8)
    npy = tmp_path_factory.getbasetemp() / "pack" / "0123.npy"
    write_pack(npy, Framing(4, fit), pictures, (row.tobytes() for row in pixels))
    for pack in (read_pack(npy), parse_pack(npy.read_bytes(), "a pack")):
        assert np.array_equal(pack.pixels, pixels)
        assert pack.pictures == tuple(pictures)
        assert pack.fit == fit
        assert [framed.size for _, framed in pack.framed()] == [each.size for each in pictures]
    assert np.array_equal(np.load(npy), pixels)
    assert not read_pack(npy).pixels.flags.writeable


def test_the_lines_have_the_documented_form(tmp_path: Path) -> None:
    facts = "2019-08-04T16:30:12", "lossy", "0123abcd", "ef" * 16, "Canon EOS 5D", "EF50mm", None, -0.5, "JPEG"
    source = Source("a/é.jpg", "cd" * 32, 40, 30, 999, *facts)
    picture = PackPicture("ab" * 32, (source,), (1, 1), 0xFE, 70, 0.25, 0.5, 1.0, "red")
    write_pack(tmp_path / "deep" / "src.npy", ONE, [picture], [b"\1\2\3"])
    assert (tmp_path / "deep" / "src.npy").read_bytes()[128:] == (
        b'\1\2\3{"fit":"pad"}\n{"brightness":0.25,"colour":"red","contrast":0.5,"id":"' + b"ab" * 32 + b'",'
        b'"perceptual_hash":"00000000000000fe","sharpness":1.0,"size":[1,1],'
        b'"sources":[{"bytes":999,"camera":"Canon EOS 5D","coding":"lossy","encoder":"0123abcd",'
        b'"format":"JPEG","height":30,'
        b'"latitude":null,"lens":"EF50mm","longitude":-0.5,'
        b'"path":"a/\\u00e9.jpg","pixels":"' + b"ef" * 16 + b'","sha256":"' + b"cd" * 32 + b'",'
        b'"taken":"2019-08-04T16:30:12","width":40}],"thumbnail_size":70}\n'
    )


def test_inconsistent_packs_are_refused(tmp_path: Path) -> None:
    npy = tmp_path / "x.npy"
    write_pack(npy, ONE, [PackPicture("a" * 64, (), (1, 1))], [bytes(3)])
    whole = npy.read_bytes()
    with pytest.raises(StageError, match=r"x.npy .* uint8 \(1, 1, 1, 3\) for 0 pictures\); run preprocess again"):
        parse_pack(whole[: 131 + len('{"fit":"pad"}\n')], "x.npy")
    with pytest.raises(StageError, match="another version of lookalike wrote it"):
        parse_pack(whole[:131], "x.npy")
    for broken in (whole[:100], whole[:130], whole[:-4], whole + b"{}\n", b"\x93NUMPY", b""):
        npy.write_bytes(broken)
        with pytest.raises(StageError, match="the pack x.npy cannot be read"):
            read_pack(npy)
    for size in (b"-1", b"4294967296", b"7.0", b"true", b"null"):
        npy.write_bytes(whole.replace(b'"thumbnail_size":0', b'"thumbnail_size":' + size))
        with pytest.raises(StageError, match=r"cannot be read \(.* is not the size of a thumbnail\); run preprocess"):
            read_pack(npy)
    np.save(npy, np.zeros((0, 2, 2, 3)))
    with pytest.raises(StageError, match="float64"):
        read_pack(npy)


def test_a_pack_without_the_sizes_of_thumbnails_is_refused(tmp_path: Path) -> None:
    """As of preprocess-10."""
    npy = tmp_path / "x.npy"
    write_pack(npy, ONE, [PackPicture("a" * 64, (), (1, 1))], [bytes(3)])
    npy.write_bytes(npy.read_bytes().replace(b',"thumbnail_size":0', b""))
    with pytest.raises(StageError, match=r"cannot be read \('thumbnail_size'\); run preprocess again"):
        read_pack(npy)


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
