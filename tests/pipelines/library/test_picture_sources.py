"""The pictures that paths on the command line name, their true names, and the files skipped or refused."""

import io
import os
import re
import tarfile
from pathlib import Path

import pytest
from PIL import Image

from pipelines.client.server import local_server
from pipelines.errors import LookalikeError
from pipelines.library import result_folders
from pipelines.library.picture_sources import PictureSource, find
from stages.record.file_kinds import FileKind, kind_of
from stages.record.file_limits import MAX_PICTURE_BYTES
from tests.stages.scenes import saved


def file(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def names(*arguments: Path) -> list[str]:
    return [source.name for source in find(arguments).sources]


def test_a_file_has_its_own_name(tmp_path: Path) -> None:
    path = file(tmp_path / "deep" / "down" / "a b.jpg", b"four")
    assert find([path]).sources == [PictureSource("a b.jpg", path, 4)]


def test_a_directory_gives_its_name_to_the_files_below(tmp_path: Path) -> None:
    for name in ("b.jpg", "a.png", "2020/may/c.jpg", "2020/.hidden.jpg"):
        file(tmp_path / "photos" / name)
    assert names(tmp_path / "photos") == [
        "photos/2020/.hidden.jpg",
        "photos/2020/may/c.jpg",
        "photos/a.png",
        "photos/b.jpg",
    ]


def test_names_do_not_depend_on_the_spelling_of_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file(tmp_path / "photos" / "sub" / "a.jpg")
    monkeypatch.chdir(tmp_path / "photos" / "sub")
    for written in (Path(".."), tmp_path / "photos", tmp_path / "photos" / "sub" / "..", Path("../../photos/")):
        assert names(written) == ["photos/sub/a.jpg"]
    assert names(Path()) == ["sub/a.jpg"]


def test_a_link_to_a_directory_that_is_named_keeps_its_own_name(tmp_path: Path) -> None:
    file(tmp_path / "2024-06-holiday" / "a.jpg")
    (tmp_path / "holiday").symlink_to(tmp_path / "2024-06-holiday")
    assert names(tmp_path / "holiday") == ["holiday/a.jpg"]


def test_files_of_operating_systems_and_of_a_library_are_skipped(tmp_path: Path) -> None:
    for name in ("a.jpg", ".DS_Store", "._a.jpg", "sub/Thumbs.db", "__MACOSX/a.jpg", "desktop.ini"):
        file(tmp_path / "photos" / name)
    state = local_server.default_root({"LOOKALIKE_ROOT": str(tmp_path / "photos" / ".lookalike")})
    assert local_server.is_default(state)
    file(state / "pachd" / "chunks" / "picture.jpg")
    found = find([tmp_path / "photos"])
    assert [source.name for source in found.sources] == ["photos/a.jpg"]
    assert found.left_out == []


def test_folders_that_were_made_for_results_are_left_out(tmp_path: Path) -> None:
    """By their mark: one of the user's that is called like them, or that results were written into, is not."""
    mine = tmp_path / "photos"
    for name in ("a.jpg", "results/b.jpg", "cat.png/c.jpg"):
        file(mine / name)
    for each in ("sheets/cat.png", "sheets/dog.png", "cat.png/new", "cat.png"):
        result_folders.make(mine / each)
        file(mine / each / "grid.png")
    found = find([mine])
    assert [each.name for each in found.sources] == [
        "photos/a.jpg", "photos/cat.png/c.jpg", "photos/cat.png/grid.png", "photos/results/b.jpg",
    ]  # fmt: skip
    assert found.left_out == [f"{mine}/{each}: results of lookalike's" for each in ("cat.png/new", "sheets")]


def test_special_files_are_skipped_and_reported(tmp_path: Path) -> None:
    directory = tmp_path / "photos"
    file(directory / "a.jpg")
    file(tmp_path / "elsewhere" / "b.jpg")
    (directory / "link.jpg").symlink_to(tmp_path / "elsewhere" / "b.jpg")
    (directory / "more").symlink_to(tmp_path / "elsewhere")
    (directory / "nothing.jpg").symlink_to(tmp_path / "gone")
    os.mkfifo(directory / "pipe")
    found = find([directory])
    assert [source.name for source in found.sources] == ["photos/a.jpg", "photos/link.jpg"]
    assert sorted(found.left_out) == [
        f"{directory}/more: a link to a directory; add it by its own path",
        f"{directory}/nothing.jpg: a broken link",
        f"{directory}/pipe: not a file",
    ]


def test_named_paths_must_exist(tmp_path: Path) -> None:
    (tmp_path / "dead").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("gone", ": not found"), ("dead", " is a broken link"), ("pipe", " is neither a file nor")):
        with pytest.raises(LookalikeError, match=re.escape(f"{tmp_path / name}{reason}")):
            find([file(tmp_path / "good.jpg"), tmp_path / name])


def test_two_files_with_one_name_are_refused(tmp_path: Path) -> None:
    one, two = file(tmp_path / "one" / "a.jpg"), file(tmp_path / "two" / "a.jpg")
    with pytest.raises(LookalikeError, match=rf"{one} and {two} would both be called a\.jpg"):
        find([one, two])
    assert names(one, one, tmp_path / "one", tmp_path / "two") == ["a.jpg", "one/a.jpg", "two/a.jpg"]


def test_unusual_names_are_kept(tmp_path: Path) -> None:
    odd = [
        'a "b" #1.jpg',
        "back\\slash.jpg",
        "[1]{2}*?!.jpg",
        "😀.jpg",
        "... .jpg",
        "%2F.jpg",
        "new\nline.jpg",
        "\udcff.jpg",
    ]
    for name in odd:
        file(tmp_path / "photos" / name)
    assert names(tmp_path / "photos") == sorted(f"photos/{name}" for name in odd)


def test_files_of_many_pictures_are_recognised_by_content(tmp_path: Path) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (8, 8)).save(picture, "PNG")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        member = tarfile.TarInfo("a.png")
        member.size = len(picture.getvalue())
        tar.addfile(member, io.BytesIO(picture.getvalue()))
    paths = {
        "picture.png": (picture.getvalue(), False),
        "picture.zip": (picture.getvalue(), False),
        "picture.bin": (picture.getvalue(), False),
        "archive.jpg": (archive.getvalue(), True),
        "unlabeled_X.bin": (bytes(3 * 96 * 96), True),
        "cut_X.bin": (bytes(3 * 96 * 96 + 1), False),
        "empty.jpg": (b"", False),
    }
    for name, (content, many) in paths.items():
        (source,) = find([file(tmp_path / name, content)]).sources
        assert source.holds_many is many, name
    huge = tmp_path / "huge.png"
    with huge.open("wb") as sparse:
        sparse.write(picture.getvalue())
        sparse.truncate(MAX_PICTURE_BYTES + 1)
    assert find([huge]).sources[0].holds_many


def test_files_that_are_not_pictures_are_counted_by_kind(tmp_path: Path) -> None:
    beside = {
        "a.xmp": b"<x:xmpmeta>",
        "b.XMP": b"<x:xmpmeta>",
        "c.txt": b"",
        "d.mov": b"\0\0\0\x14ftypqt  ",
        "e.pdf": b"%PDF-1",
    }
    beside |= {"LICENSE": b"MIT", "Dear Mr. Smith": b"Hello", ".gitignore": b"*.pyc"}
    for name, content in beside.items():
        file(tmp_path / "trip" / name, content)
    file(tmp_path / "trip" / "empty.jpg", b"")
    found = find([tmp_path / "trip", file(tmp_path / "notes.txt", b"hello")])
    assert [each.name for each in found.sources] == ["trip/empty.jpg"]
    assert found.left_out == ["9 files that are not pictures: 3 without extension, 2 .txt, 2 .xmp, 1 .mov, 1 .pdf"]
    assert find([tmp_path / "notes.txt"]).left_out == ["1 file that is not a picture: 1 .txt"]
    assert [each.name for each in find([tmp_path / "notes.txt"], beside="notes.txt".__eq__).sources] == ["notes.txt"]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000", "AVIF", "PPM", "TGA", "ICO"])
def test_a_picture_is_taken_whatever_its_name_says_and_a_damaged_one_by_its_name(tmp_path: Path, kind: str) -> None:
    content = saved(Image.new("RGB", (32, 32), "red"), kind)
    assert kind_of(content[:512]) is not FileKind.OTHER
    whole = [file(tmp_path / name, content) for name in ("a.txt", "b", "c.xmp", "d.pdf")]
    damaged = [file(tmp_path / f"e.{each}", b"\0" + content) for each in ("jpg", "PNG", "nef", "jxl", "zip", "bin")]
    assert names(*whole, *damaged) == sorted(each.name for each in (*whole, *damaged))
