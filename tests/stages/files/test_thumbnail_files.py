"""Thumbnails are read one by one, from files and from pipes that can be opened once."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from stages.datum.contract import StageError
from stages.files import thumbnail_files
from stages.files.thumbnail_files import LazyThumbnails, ThumbnailFiles, ThumbnailPlace
from tests.pipes import piped

ONE, TWO = [b"\xff\xd8 one", b"", b"\xff\xd8 three"], [b"\xff\xd8 four"]


def written(directory: Path, part: str, thumbnails: Sequence[bytes]) -> list[ThumbnailPlace]:
    thumbnail_files.write(directory / f"{part}.thumbnails", thumbnails)
    return thumbnail_files.places(part, map(len, thumbnails))


def test_every_thumbnail_by_its_place(tmp_path: Path) -> None:
    places = [*written(tmp_path / "t", "one", ONE), *written(tmp_path / "t", "two", TWO)]
    thumbnails = LazyThumbnails(places, ThumbnailFiles(tmp_path / "t").read)
    assert len(thumbnails) == 4
    assert list(thumbnails) == thumbnails[:] == [*ONE, *TWO]
    assert thumbnails[2] == ONE[2]
    assert (tmp_path / "t" / "one.thumbnails").read_bytes() == b"".join(ONE)


def test_no_file_stays_open(tmp_path: Path) -> None:
    files, before = ThumbnailFiles(tmp_path), len(list(Path("/proc/self/fd").iterdir()))
    for number in range(50):
        (place,) = written(tmp_path, str(number), [b"%d" % number])
        assert files.read(place) == b"%d" % number
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_pipes_are_opened_once_and_only_if_they_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    for part, content in (("one", ONE), ("two", TWO)):
        piped(tmp_path / "t" / f"{part}.thumbnails", b"".join(content))
    os.mkfifo(tmp_path / "t" / "never.thumbnails")  # opening it would wait for ever
    files = ThumbnailFiles(tmp_path / "t")
    places = [thumbnail_files.places(part, map(len, of)) for part, of in (("one", ONE), ("two", TWO))]
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(2):
        assert [[files.read(place) for place in some] for some in places] == [ONE, TWO]
    assert len(list(Path("/proc/self/fd").iterdir())) == before + 1  # the copies of all parts
    assert list((tmp_path / "tmp").iterdir()) == []  # nothing would be left if this process were killed now
    with pytest.raises(StageError, match=r"^two\.thumbnails is not the file of thumbnails that its table describes"):
        files.read(ThumbnailPlace("two", 1, len(TWO[0])))  # the next part's bytes are not this one's
    with pytest.raises(StageError, match=r"^one\.thumbnails is not the file"):
        files.read(ThumbnailPlace("one", 0, len(b"".join(ONE)) + 1))


def test_a_missing_file_and_places_outside_of_one_are_refused(tmp_path: Path) -> None:
    written(tmp_path, "one", ONE)
    for directory in (tmp_path, tmp_path / "none", tmp_path / "one.thumbnails"):
        with pytest.raises(
            StageError, match=r"^two\.thumbnails, a file of thumbnails, is missing: .* --reprocess index$"
        ):
            ThumbnailFiles(directory).read(ThumbnailPlace("two", 0, 1))
    for begin, size in ((0, 1 << 62), (1 << 62, 1), (len(b"".join(ONE)), 1)):
        with pytest.raises(
            StageError, match=r"^one\.thumbnails is not the file of thumbnails that its table describes"
        ):
            ThumbnailFiles(tmp_path).read(ThumbnailPlace("one", begin, size))


def test_a_refusal_names_the_pipeline_to_start_again(tmp_path: Path) -> None:
    written(tmp_path, "one", ONE)
    files = ThumbnailFiles(tmp_path, "features-queries")
    for place in (ThumbnailPlace("one", 0, 1 << 62), ThumbnailPlace("two", 0, 1)):
        with pytest.raises(StageError, match=r": reprocess .*: lookalike deploy --reprocess features-queries$"):
            files.read(place)
