import gzip
import hashlib
import io
import tarfile
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stages.datum.contract import DatumInput
from stages.decode import picture_reader, stl10
from stages.decode.decoder_processes import DecoderProcesses
from stages.decode.picture_reader import DecodedPicture, UnreadableFile
from stages.record import pfs_names
from stages.record.file_kinds import why_unreadable
from stages.record.file_limits import LIMITS, FileLimits
from stages.record.framing import Framing
from stages.record.sources import LOSSLESS, LOSSY, Source
from tests.pipes import piped
from tests.small_archives import tarred, zipped

SIDE = 8


def jpeg(shade: int = 100, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), (shade, 2 * shade % 256, 50)).save(file, options.pop("kind", "JPEG"), **options)
    return file.getvalue()


@cache
def decoders() -> DecoderProcesses:
    """Those of all tests; they end with this process."""
    return DecoderProcesses(2)


def read(path: Path, repo_path: str, limits: FileLimits = LIMITS) -> tuple[list[Source], dict[str, str]]:
    """The sources of the pictures, and the reasons for refused files by path."""
    found, refused = [], {}
    for each in picture_reader.read(
        DatumInput("images", path, repo_path, ""), Framing(SIDE, "pad"), decoders(), limits
    ):
        if isinstance(each, DecodedPicture):
            assert each.framed.pixels.shape == (SIDE, SIDE, 3)
            assert each.framed.pixels.dtype == np.uint8
            assert each.source.coding in (LOSSY, LOSSLESS) and each.source.encoder  # see test_exactness
            assert each.source.format in ("JPEG", "PNG", "STL-10")
            found.append(each.source._replace(coding="", encoder="", pixels="", format=""))
        else:
            assert isinstance(each, UnreadableFile)
            refused[each.path] = each.reason
    return found, refused


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "datum"


def source(path: str, content: bytes, taken: str = "") -> Source:
    side = stl10.SIDE if len(content) == stl10.RECORD else SIDE
    return Source(path, hashlib.sha256(content).hexdigest(), side, side, len(content), taken)


@pytest.mark.parametrize("name", ["a.jpg", "a.txt", "a.zip", "no extension", "größe 🐈 #1 [x].jpg", "...", "x" * 300])
def test_a_picture_is_recognised_under_any_name(file: Path, name: str) -> None:
    file.write_bytes(jpeg())
    assert read(file, pfs_names.escape_component(name)) == ([source(name, jpeg())], {})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"hello", why_unreadable(b"hello")),
        (jpeg()[:200], "damaged or truncated JPEG picture"),
        (b"%PDF-1.4", "a PDF document: save its pages as PNG"),
        (b"PK\x03\x04 and no more", "damaged or truncated zip archive"),
        (gzip.compress(jpeg()), "gzip data that is not a tar archive"),
    ],
)
def test_other_files_are_refused_with_a_reason(file: Path, content: bytes, reason: str) -> None:
    file.write_bytes(content)
    assert read(file, "a%23.jpg") == ([], {"a#.jpg": reason})


def test_a_directory_is_read_with_all_below_except_droppings(file: Path) -> None:
    content = {
        "%names": b"a.jpg\n",
        "b.jpg": jpeg(),
        "deep/a%5B1%5D.png": jpeg(kind="PNG"),
        "deep/%names": b"ignored too",
        "pics.zip": zipped({"in/c.jpg": jpeg(7), "__MACOSX/in/._c.jpg": b"junk", "in/Thumbs.db": b"junk", "in/": b""}),
        ".DS_Store": b"junk",
        "deep/._a.jpg": b"junk",
    }
    for name, data in content.items():
        (file / name).parent.mkdir(parents=True, exist_ok=True)
        (file / name).write_bytes(data)
    found, refused = read(file, "my%2Fholiday")
    assert found == [
        source("my/holiday/b.jpg", jpeg()),
        source("my/holiday/pics.zip/in/c.jpg", jpeg(7)),
        source("my/holiday/deep/a[1].png", jpeg(kind="PNG")),
    ]
    assert refused == {}
    assert read(file, "")[0][0].path == "b.jpg"  # the glob "/"


def test_links_and_devices_in_a_directory_are_reported(file: Path, tmp_path: Path) -> None:
    file.mkdir()
    (file / "loop").symlink_to(file)
    (file / "nowhere").symlink_to(tmp_path / "missing")
    (tmp_path / "real.jpg").write_bytes(jpeg())
    (file / "picture.jpg").symlink_to(tmp_path / "real.jpg")
    found, refused = read(file, "d")
    assert found == [source("d/picture.jpg", jpeg())]
    assert set(refused) == {"d/loop", "d/nowhere"}


def test_files_of_a_lazy_input_are_read_once(file: Path) -> None:
    piped(file / "a.jpg", jpeg())
    piped(file / "b.zip", zipped({"c.jpg": jpeg(5)}))
    assert read(file, "d") == ([source("d/a.jpg", jpeg()), source("d/b.zip/c.jpg", jpeg(5))], {})


@pytest.mark.parametrize(
    "pack", [zipped, tarred, lambda files: gzip.compress(tarred(files))], ids=["zip", "tar", "tgz"]
)
def test_unreadable_members_are_refused_and_the_rest_is_read(file: Path, pack: Any) -> None:
    file.write_bytes(
        pack(
            {
                "good.jpg": jpeg(),
                "../up.jpg": jpeg(),
                "/abs.jpg": jpeg(),
                "in.zip": zipped({"x.jpg": jpeg()}),
                "in.tar.gz": gzip.compress(tarred({"x.jpg": jpeg()})),
                "note.txt": b"hi",
                "odd %41.jpg": jpeg(3),
            }
        )
    )
    found, refused = read(file, "p%23.bin")
    assert found == [source("p#.bin/good.jpg", jpeg()), source("p#.bin/odd %41.jpg", jpeg(3))]
    assert refused == {
        "p#.bin/../up.jpg": 'an archive member with ".." in its path',
        "p#.bin//abs.jpg": "an archive member with an absolute path",
        "p#.bin/in.zip": "an archive inside an archive, which is not unpacked: put it separately",
        "p#.bin/in.tar.gz": "an archive inside an archive, which is not unpacked: put it separately",
        "p#.bin/note.txt": why_unreadable(b"hi"),
    }


def test_a_links_target_is_never_read(file: Path) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        link = tarfile.TarInfo("link.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    file.write_bytes(content.getvalue())
    assert read(file, "l.tar") == ([], {"l.tar/link.jpg": "an archive member that is a link: links are not followed"})


def test_members_of_an_ingest_block_keep_their_own_true_names(file: Path) -> None:
    true = ["a/größe [1].jpg", "A:/x.jpg", "100%41.jpg", "..", "bad\udcff.jpg", "n" * 400]
    file.write_bytes(tarred({pfs_names.escape_path(each): jpeg(number) for number, each in enumerate(true)}))
    found, refused = read(file, pfs_names.block_name("0" * 16))
    assert found == [source(each, jpeg(number)) for number, each in enumerate(true)]
    assert refused == {}


def test_a_list_of_its_pictures_begins_a_block_and_no_other_archive(file: Path) -> None:
    file.write_bytes(tarred({pfs_names.MEMBERS_FILE: b"{}\n", "a.jpg": jpeg()}))
    assert read(file, pfs_names.block_name("0" * 16)) == ([source("a.jpg", jpeg())], {})
    found, refused = read(file, "my.tar")
    assert found == [source("my.tar/a.jpg", jpeg())]
    assert refused == {f"my.tar/{pfs_names.MEMBERS_FILE}": why_unreadable(b"{}\n")}


def test_an_archive_that_ingest_packed_into_a_block_is_still_an_archive(file: Path) -> None:
    inner = {"in/a.jpg": jpeg(1), "in/b.zip": zipped({"c.jpg": jpeg()})}
    members = {"my%2Fpics.zip": zipped(inner), "cut.tar": tarred(inner)[:3000], "plain.jpg": jpeg(2)}
    file.write_bytes(tarred(members))
    found, refused = read(file, pfs_names.block_name("f" * 16))
    assert found == [source("my/pics.zip/in/a.jpg", jpeg(1)), source("plain.jpg", jpeg(2))]
    assert refused == {
        "my/pics.zip/in/b.zip": "an archive inside an archive, which is not unpacked: put it separately",
        "cut.tar": "damaged or truncated tar archive",
    }
    file.write_bytes(zipped({"a.jpg": jpeg()}).replace(jpeg()[9:99], bytes(90)))  # not a block of ingest
    assert read(file, pfs_names.block_name("f" * 16)) == ([], {"a.jpg": "a damaged archive member"})


def test_stl10_files_are_many_pictures_and_labels_are_none(file: Path) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (3, stl10.RECORD), dtype=np.uint8).tobytes()
    file.write_bytes(pictures)
    expected = [
        source(f"unlabeled_X.bin/00000{number}", pictures[number * stl10.RECORD : (number + 1) * stl10.RECORD])
        for number in range(3)
    ]
    assert read(file, "unlabeled_X.bin") == (expected, {})
    assert "STL-10" in read(file, "unlabeled_X.dat")[1]["unlabeled_X.dat"]  # recognisable by the name only
    file.write_bytes(
        gzip.compress(tarred({"s/train_X.bin": pictures, "s/train_y.bin": b"\1" * 3, "s/cut_X.bin": b"\1"}))
    )
    found, refused = read(file, "stl10_binary.tar.gz")
    assert [each.path for each in found] == [f"stl10_binary.tar.gz/s/train_X.bin/00000{number}" for number in range(3)]
    assert refused == {
        "stl10_binary.tar.gz/s/train_y.bin": "labels of STL-10, not pictures",
        "stl10_binary.tar.gz/s/cut_X.bin": "not whole STL-10 pictures: 1 bytes is not a multiple of 27,648",
    }


def test_a_record_is_a_picture_for_any_first_bytes_and_has_the_same_name_everywhere(file: Path) -> None:
    beginnings = (b"\x1f\x8b\x08", b"\xff\xd8\xff", b"PK\3\4", tarred({"a": b""})[:512])
    records = {
        f"a/x.bin/{number:06}": (begin + bytes(stl10.RECORD))[: stl10.RECORD] for number, begin in enumerate(beginnings)
    }
    expected = [source(name, content) for name, content in records.items()]
    file.write_bytes(b"".join(records.values()))
    assert read(file, "a/x.bin") == (expected, {})
    file.write_bytes(tarred(records))
    assert read(file, pfs_names.block_name("f" * 16)) == (expected, {})
    for name, content in records.items():
        file.write_bytes(content)
        assert read(file, name) == ([source(name, content)], {})
    file.write_bytes(bytes(2 * stl10.RECORD))
    assert read(file, "x.bin/000000")[1] == {"x.bin/000000": "not one STL-10 picture: 55,296 bytes, not 27,648"}


def test_records_keep_their_order_among_other_pictures_and_refused_files(file: Path) -> None:
    shades = np.random.default_rng(0).integers(0, 256, 400, np.uint8)
    records = {f"x.bin/{number:06}": bytes([shade]) * stl10.RECORD for number, shade in enumerate(shades)}
    names_of = list(records)
    members = dict[str, bytes]()
    for number, name in enumerate(names_of):
        members[name] = records[name]
        if number in (3, 40) or number > 330:
            members[f"{number}.jpg"] = jpeg(number)
        if number % 50 == 20:
            members[f"{number}.txt"] = b"text"
    members |= {f"only {number}.jpg": jpeg(number % 2) for number in range(90)}  # no record follows
    file.write_bytes(tarred({pfs_names.escape_path(name): content for name, content in members.items()}))
    found, refused = read(file, pfs_names.block_name("f" * 16))
    assert found == [source(name, content) for name, content in members.items() if not name.endswith("txt")]
    assert refused == {f"{number}.txt": why_unreadable(b"text") for number in range(20, 400, 50)}


def test_a_read_that_is_given_up_does_not_wait_for_its_records(file: Path) -> None:
    file.write_bytes(bytes(stl10.RECORD * 70))
    everything = picture_reader.read(DatumInput("images", file, "x.bin", ""), Framing(SIDE, "pad"), decoders())
    assert isinstance(next(everything), DecodedPicture)
    assert isinstance(everything, Generator)
    everything.close()


def test_a_tar_of_more_members_than_are_kept_is_read_all_the_same(file: Path) -> None:
    file.write_bytes(tarred({f"{number}.jpg": jpeg(number) for number in range(5)}))
    at_once = read(file, "t.tar")
    assert read(file, "t.tar", FileLimits(kept_headers=4)) == at_once
    assert len(at_once[0]) == 5


def test_a_picture_file_that_is_too_large_is_not_read(file: Path) -> None:
    limits = FileLimits(picture_bytes=1000)
    file.write_bytes(jpeg() + bytes(1000))
    reason = f"{len(jpeg()) + 1000:,} bytes: the limit for a picture's file is 1,000"
    assert read(file, "a", limits) == ([], {"a": reason})
    content = tarred({"a": jpeg() + bytes(1000)})
    file.write_bytes(content)
    assert read(file, "t", limits) == ([], {"t/a": reason})


def test_nothing_is_left_behind(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    file.write_bytes(zipped({"../../evil.jpg": jpeg(), "/tmp/evil.jpg": jpeg(), "good.jpg": jpeg()}))
    before = sorted(tmp_path.rglob("*"))
    read(file, "z.zip")
    assert sorted(tmp_path.rglob("*")) == before
