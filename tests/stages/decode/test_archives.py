import gzip
import io
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings, strategies as st

from stages.decode.archives.archive_member import BadArchive, BadMember, unsafe_name
from stages.decode.archives.archive_reader import members
from stages.decode.archives.tar_archives import TarHeader, usual_size
from stages.record.file_kinds import HEAD, FileKind, kind_of
from stages.record.file_limits import LIMITS, FileLimits
from tests.example_counts import examples
from tests.small_archives import tarred

FILES = {"a.jpg": b"first", "deep/b é.jpg": os.urandom(2000), "empty": b"", "block": bytes(512)}


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def tgz(files: dict[str, bytes]) -> bytes:
    return gzip.compress(tarred(files))


PACKERS: dict[str, Callable[[dict[str, bytes]], bytes]] = {"zip": zipped, "tar": tarred, "tar.gz": tgz}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def read(path: Path, data: bytes, limits: FileLimits = LIMITS) -> dict[str, bytes | str]:
    """The members' content by name, or the reason why it is missing."""
    path.write_bytes(data)
    found: dict[str, bytes | str] = {}
    for member in members(path, kind_of(data[:HEAD]), limits):
        if member.stream:
            try:
                found[member.name] = member.stream.read(3) + member.stream.read(member.size)
            except BadMember as failure:
                found[member.name] = str(failure)
        else:
            found[member.name] = member.problem or ""
    return found


def refusal(path: Path, data: bytes, limits: FileLimits = LIMITS) -> str:
    path.write_bytes(data)
    with pytest.raises(BadArchive) as failure:
        next(members(path, kind_of(data[:HEAD]), limits))  # before anything is yielded
    return str(failure.value)


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_every_member_is_read(path: Path, pack: Callable[[dict[str, bytes]], bytes]) -> None:
    assert read(path, pack(FILES)) == FILES


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("Ünï 写真.png".encode(), "Ünï 写真.png"),  # as macOS writes it
        ("Übung.png".encode("cp437"), "Übung.png"),
        (b"plain.png", "plain.png"),
        (b"\xff\xfe.png", "\xa0■.png"),
    ],
)
def test_names_in_a_zip_without_a_flag_are_utf_8_or_else_code_page_437(path: Path, stored: bytes, shown: str) -> None:
    data = zipped({"?" * len(stored): b"content"}).replace(b"?" * len(stored), stored)
    assert read(path, data) == {shown: b"content"}


@pytest.mark.parametrize("dialect", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_and_undecodable_names_come_back(path: Path, dialect: int) -> None:
    names = {"x" * 300: b"long", "bad\udcff.jpg": b"bytes", "🐈/\n": b"odd"}
    assert read(path, tarred(names, dialect)) == names


def test_members_may_be_left_unread(path: Path) -> None:
    for pack in PACKERS.values():
        data = pack(FILES)
        path.write_bytes(data)
        assert [each.name for each in members(path, kind_of(data[:HEAD]), LIMITS)] == list(FILES)


def test_directories_are_not_members(path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        directory = tarfile.TarInfo("folder")
        directory.type = tarfile.DIRTYPE
        archive.addfile(directory)
    assert refusal(path, file.getvalue()) == "a tar archive without files"
    assert refusal(path, zipped({"folder/": b""})) == "a zip archive without files"


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (tarfile.SYMTYPE, "a link"),
        (tarfile.LNKTYPE, "a link"),
        (tarfile.FIFOTYPE, "not a regular file"),
        (tarfile.CHRTYPE, "not a regular file"),
        (tarfile.BLKTYPE, "not a regular file"),
        (tarfile.GNUTYPE_SPARSE, "a sparse archive member"),
    ],
)
def test_special_files_in_a_tar_are_refused(path: Path, kind: bytes, problem: str) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        info = tarfile.TarInfo("odd")
        info.type = kind
        info.linkname = "/etc/passwd"
        archive.addfile(info)
        archive.addfile(tarfile.TarInfo("good"))
    found = read(path, file.getvalue())
    assert problem in str(found["odd"])
    assert found["good"] == b""


def test_special_files_in_a_zip_are_refused(path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        pipe = zipfile.ZipInfo("pipe")
        pipe.external_attr = 0o010644 << 16
        archive.writestr(pipe, "")
        archive.writestr("unusual", b"x" * 100, zipfile.ZIP_LZMA)
        archive.writestr("good", b"fine")
    found = read(path, file.getvalue())
    assert "a link" in str(found["link"])
    assert "not a regular file" in str(found["pipe"])
    assert "unusual way" in str(found["unusual"])
    assert found["good"] == b"fine"


def test_encrypted_members_are_refused(path: Path) -> None:
    data = bytearray(zipped({"secret": b"x", "open": b"y"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    found = read(path, bytes(data))
    assert found == {"secret": "an encrypted archive member", "open": b"y"}


def test_a_damaged_member_does_not_spoil_the_others(path: Path) -> None:
    data = zipped({"bad": b"0123456789" * 9, "good": b"fine"}, zipfile.ZIP_STORED)
    found = read(path, data.replace(b"0123456789", b"0123456780", 1))
    assert found == {"bad": "a damaged archive member", "good": b"fine"}
    found = read(path, data.replace(b"PK\x03\x04", b"PK\x03\x05", 2).replace(b"PK\x03\x05", b"PK\x03\x04", 1))
    assert found["good"] == "a damaged archive member"  # its own header


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../evil.jpg", 'an archive member with ".." in its path'),
        ("a/../../evil.jpg", 'an archive member with ".." in its path'),
        ("a\\..\\evil.jpg", 'an archive member with ".." in its path'),
        ("..", 'an archive member with ".." in its path'),
        ("/etc/evil.jpg", "an archive member with an absolute path"),
        ("\\\\server\\evil.jpg", "an archive member with an absolute path"),
        ("C:\\evil.jpg", "an archive member with an absolute path"),
        ("c:/evil.jpg", "an archive member with an absolute path"),
        ("a..b/c...jpg", None),
        ("a/./b.jpg", None),
        ("C:evil.jpg", None),
    ],
)
def test_names_that_lead_out_of_the_archive_are_recognised(name: str, problem: str | None) -> None:
    assert unsafe_name(name) == problem


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
@pytest.mark.parametrize("part", [0.1, 0.5, 0.75])
def test_truncated_archives_are_refused_whole(
    path: Path, pack: Callable[[dict[str, bytes]], bytes], part: float
) -> None:
    files = {str(number): os.urandom(3000) for number in range(9)}
    data = pack(files)
    assert refusal(path, data[: int(len(data) * part)]).startswith("damaged or truncated")


def test_a_tar_with_a_damaged_header_is_not_read_as_a_shorter_one(path: Path) -> None:
    data = bytearray(tarred({"a": b"1", "b": b"2"}))
    data[1024 + 5] ^= 255  # in the header of b
    assert refusal(path, bytes(data)) == "damaged or truncated tar archive"
    assert refusal(path, tarred({"a": b"1", "b": b"2"})[:1024]) == "damaged or truncated tar archive"
    assert refusal(path, tarred({"a": b"1"}) + tarred({"b": b"2"})) == "a tar archive with data after its end"


def test_gzip_that_is_not_a_tar_is_named(path: Path) -> None:
    assert refusal(path, gzip.compress(b"a picture?" * 100)) == "gzip data that is not a tar archive"
    damaged = bytearray(tgz(FILES))
    damaged[-6] ^= 1  # of the checksum
    assert refusal(path, bytes(damaged)) == "damaged or truncated gzip archive"


def test_bombs_are_refused_before_anything_is_read(path: Path) -> None:
    limits = FileLimits(min_expansion_bytes=1_000_000)
    flat = {f"{number}.bmp": bytes(200_000) for number in range(6)}
    for pack in (zipped, tgz):
        assert refusal(path, pack(flat), limits) == "expands to more than 1,000,000 bytes"
    assert len(read(path, tarred(flat), limits)) == 6  # does not expand at all
    padded = gzip.compress(tarred({"a": b"1"}) + bytes(2_000_000))
    assert refusal(path, padded, limits) == "expands to more than 1,000,000 bytes"


def test_a_zip_member_with_a_false_size_gives_no_more_than_that_size(path: Path) -> None:
    data = zipped({"lie": bytes(500_000)})
    central = data.index(b"PK\x01\x02")
    lied = data[: central + 24] + struct.pack("<I", 100) + data[central + 28 :]
    assert read(path, lied) == {"lie": "a damaged archive member"}


def test_too_many_members_are_refused(path: Path) -> None:
    for pack in PACKERS.values():
        assert refusal(path, pack(FILES), FileLimits(members=3)) == "more than 3 members"


def test_a_tar_with_gigabytes_of_description_is_refused_unread(path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type = tarfile.GNUTYPE_LONGNAME
    info.size = 3_000_000_000
    header = info.tobuf(tarfile.GNU_FORMAT)
    for data in (header + bytes(10_000), gzip.compress(header + bytes(10_000))):
        assert refusal(path, data) == "descriptions of members that are too large"


def test_negative_sizes_do_not_loop(path: Path) -> None:
    info = tarfile.TarInfo("a")
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" * 10 + b"\xfc\x00"  # -1024 in base 256
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
    assert refusal(path, bytes(header) * 3).startswith("damaged or truncated")


SMALL = {name: pack({"a": b"1", "b" * 120: zlib.compress(b"2" * 99)}) for name, pack in PACKERS.items()}


@given(st.sampled_from(sorted(SMALL)), st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=9))
@settings(max_examples=examples(200))
def test_no_bytes_raise_anything_but_bad_archive(
    tmp_path_factory: pytest.TempPathFactory, name: str, changes: list[tuple[float, int]]
) -> None:
    data = bytearray(SMALL[name])
    for place, value in changes:
        data[int(place * len(data))] = value
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    path.write_bytes(data)
    kind = {"zip": FileKind.ZIP, "tar": FileKind.TAR, "tar.gz": FileKind.GZIP}[name]
    try:
        for member in members(path, kind, LIMITS):
            if member.stream:
                member.stream.read(1_000_000)
    except (BadArchive, BadMember):
        pass


numbers = st.integers(0, 8**7 - 1)
headers = st.builds(
    lambda name, dialect, **facts: (name, dialect, facts),
    st.one_of(
        st.text(min_size=1, max_size=90),
        st.builds("{}/{}".format, st.text("ab/", min_size=60, max_size=150), st.text("c", min_size=1, max_size=90)),
    ).filter(lambda name: "\0" not in name),
    st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
    size=st.integers(0, 8**12),
    mode=numbers,
    uid=numbers,
    mtime=st.integers(0, 8**12),
    uname=st.text("user", max_size=8),
    type=st.sampled_from([tarfile.REGTYPE] * 4 + [tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE]),
)


def header(name: str, dialect: Literal[0, 1, 2], facts: dict[str, object]) -> bytes:
    """The member's own header, the last block of its description."""
    info = tarfile.TarInfo(name)
    for field, value in facts.items():
        setattr(info, field, value)
    try:
        return info.tobuf(dialect, "utf-8", "surrogateescape")[-tarfile.BLOCKSIZE :]
    except ValueError:  # this dialect has no place for it
        return tarfile.TarInfo(name[:20].replace("/", "")).tobuf(errors="surrogateescape")[-tarfile.BLOCKSIZE :]


def parsed(kind: type[tarfile.TarInfo], block: bytes) -> tuple[str, int, bytes] | str:
    try:
        info = kind.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError as failure:
        return repr(failure)
    return info.name, info.size, info.type


@given(headers, st.lists(st.tuples(st.integers(0, 511), st.integers(0, 255)), max_size=2), st.booleans())
def test_headers_are_read_as_tarfile_reads_them(
    facts: tuple[str, Literal[0, 1, 2], dict[str, object]], damage: list[tuple[int, int]], summed: bool
) -> None:
    block = bytearray(header(*facts))
    for place, byte in damage:
        block[place] = byte
    if summed:  # so that the damage is not found by the checksum
        block[148:156] = b"%06o\0 " % (sum(block) - sum(block[148:156]) + 256)
    assert parsed(TarHeader, bytes(block)) == parsed(tarfile.TarInfo, bytes(block))


@given(st.integers(0, 511), st.integers(1, 255))
def test_usual_headers_are_the_ones_read_quickly(place: int, byte: int) -> None:
    block = bytearray(header("a/b", tarfile.GNU_FORMAT, {"size": 27_648}))
    assert usual_size(block) == 27_648
    block[place] = (block[place] + byte) % 256
    assert usual_size(block) is None, "its checksum is false"
