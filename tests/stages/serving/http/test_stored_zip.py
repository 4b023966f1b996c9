"""Archives as other programs read them: names that are safe and once, dates, members that are missing."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given, settings, strategies as st

from stages.serving.http import stored_zip
from stages.serving.http.stored_zip import ZipMember
from tests.example_counts import examples


def member(name: str, content: bytes = b"x", date: str = "") -> ZipMember:
    return ZipMember(name, date, len(content), zlib.crc32(content), [content[:1], content[1:]])


def opened(*members: ZipMember | str) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(b"".join(stored_zip.archive(members))))


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        (["a/b.jpg", "A/B.jpg", "a/b.jpg"], ["a/b.jpg", "A/B (2).jpg", "a/b (3).jpg"]),
        (["../../etc/passwd", "/root", "a/./b"], ["_./_./etc/passwd".replace("_.", "._"), "root", "a/_/b"]),
        (["c:\\x", "con.png", "a/lpt1", "con"], ["c__x", "_con.png", "a/_lpt1", "_con"]),
        (["odd \udcff.png", "tab\t.png", "x. "], ["odd %FF.png", "tab_.png", "x._"]),
        (["é", "e\u0301"], ["é", "e\u0301 (2)"]),
        (["x", "x/y", "y/z", "y"], ["x", "x_y", "y/z", "y (2)"]),
        ([""], ["_"]),
    ],
)
def test_names_are_safe_and_once(given: Sequence[str], safe: Sequence[str]) -> None:
    with opened(*map(member, given)) as archive:
        assert archive.namelist() == safe


@settings(max_examples=examples(100))
@given(st.lists(st.text(st.sampled_from("aA./\\ :\udcff\0é"), max_size=8), max_size=12))
def test_any_paths_are_distinct_names_below_the_directory(paths: list[str]) -> None:
    with opened(*map(member, paths)) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    assert len({each.casefold() for each in names}) == len(paths)
    for each in names:
        assert not PureWindowsPath(each).is_absolute() and ".." not in PurePosixPath(each).parts
        assert not any(part.endswith((".", " ")) or not part for part in each.split("/"))


def test_dates_are_the_cameras_where_zip_can_hold_them() -> None:
    dates = ["2019-08-03T16:30:11", "", "0001-01-01T00:00:00", "2200-01-01T00:00:00", "nonsense"]
    with opened(*(member(f"{at}", date=each) for at, each in enumerate(dates))) as archive:
        found = [each.date_time for each in archive.infolist()]
    assert found == [(2019, 8, 3, 16, 30, 10)] + [(1980, 1, 1, 0, 0, 0)] * 4


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_zip, "MOST_BYTES", 200)
    with opened(
        member("a"), "gone\udcff.jpg: it was removed", member("b", b"x" * 250), member("MISSING.txt")
    ) as archive:
        assert archive.namelist() == ["a", "MISSING.txt", "MISSING (2).txt"]
        said = archive.read("MISSING (2).txt").decode()
    assert said.splitlines()[2:] == ["gone%FF.jpg: it was removed", "b: it did not fit into this archive"]


def test_it_can_be_read_while_it_arrives() -> None:
    content = b"".join(stored_zip.archive([member("a/b.txt", b"hello"), member("c", b"")]))
    flags, kind, crc, size, stored = struct.unpack_from("<2xHH4x3I", content, 4)
    assert (flags & 8, kind, crc, size, stored) == (0, 0, zlib.crc32(b"hello"), 5, 5)
