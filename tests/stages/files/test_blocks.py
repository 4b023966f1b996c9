"""Ingest blocks: the pictures that share one, the bytes of a block, and its list."""

import hashlib
import io
import tarfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from stages.files import blocks
from stages.files.blocks import ByteRange
from stages.record import block_names
from stages.record.block_names import BlockMember
from stages.record.pfs_names import is_block

PREFIXES = st.text("01", max_size=63)


@given(st.lists(PREFIXES, unique=True), st.text())
def test_a_name_tells_the_one_block_of_an_earlier_version(prefixes: list[str], name: str) -> None:
    """The blocks of such a library are the leaves of a tree, so none of its prefixes begins another."""
    leaves = {each for each in prefixes if not any(each != other and each.startswith(other) for other in prefixes)}
    files = {block_names.file_name(each): each for each in leaves}
    assert len(files) == len(leaves)
    assert all(is_block(each) and block_names.is_earlier(each) for each in files)
    home = block_names.home(name, files)
    bits = f"{int.from_bytes(hashlib.sha256(name.encode('utf-8', 'surrogatepass')).digest()[:8], 'big'):064b}"
    assert (None if home is None else files[home]) == next((each for each in leaves if bits.startswith(each)), None)


@given(st.sets(st.text(), min_size=1), st.integers(1, 5))
def test_blocks_are_cut_in_the_order_of_names(names: set[str], limit: int) -> None:
    cut = [[*each] for each in blocks.cut(dict.fromkeys(names, ByteRange(Path())), limit)]
    assert [name for each in cut for name in each] == sorted(names)
    assert {len(each) for each in cut[:-1]} <= {limit}
    assert 0 < len(cut[-1]) <= limit


NAME = st.text(min_size=1, max_size=400)


def spans(directory: Path, pictures: dict[str, bytes]) -> dict[str, ByteRange]:
    """The pictures one after the other in a file, as in a block."""
    file = directory / "pictures"
    file.write_bytes(b"".join(pictures.values()))
    found, offset = {}, 0
    for name, content in pictures.items():
        found[name] = ByteRange(file, offset, len(content))
        offset += len(content)
    return found


@given(st.dictionaries(NAME, st.binary(max_size=1500), min_size=1, max_size=8), st.randoms())
@settings(deadline=None)
def test_equal_pictures_make_equal_blocks(
    tmp_path_factory: pytest.TempPathFactory, pictures: dict[str, bytes], lot: Random
) -> None:
    directory = tmp_path_factory.mktemp("block")
    members = spans(directory, pictures)
    block = directory / "block.tar"
    made = blocks.block(members)
    block.write_bytes(b"".join(made.pieces()))
    assert is_block(made.name)
    assert not block_names.is_earlier(made.name)
    read = blocks.read(block)
    assert {name: content(span) for name, span in read.items()} == pictures
    listed = block_names.read_list(lambda most: block.read_bytes()[:most])
    assert listed == [
        BlockMember(name, hashlib.sha256(content).hexdigest(), len(content))
        for name, content in sorted(pictures.items())
    ]
    shuffled = list(read.items())
    lot.shuffle(shuffled)
    again = blocks.block(dict(shuffled))
    assert (again.name, b"".join(again.pieces())) == (made.name, block.read_bytes())


def test_a_list_longer_than_the_first_look_is_read_whole(tmp_path: Path) -> None:
    pictures = {f"{'x' * 300}{number}": b"" for number in range(400)}
    made = blocks.block(spans(tmp_path, pictures))
    whole = b"".join(made.pieces())
    asked: list[int] = []

    def read(most: int) -> bytes:
        asked.append(most)
        return whole[:most]

    listed = block_names.read_list(read)
    assert listed is not None
    assert {each.path for each in listed} == pictures.keys()
    assert len(asked) == 2
    assert asked[-1] == 512 + len(made.listed)


@pytest.mark.parametrize("listed", [b"", b"no JSON\n", b'{"path": "a"}\n', b"[1]\n"])
def test_a_block_of_another_program_has_no_list(listed: bytes) -> None:
    header = tarfile.TarInfo("%names.jsonl")
    header.size = len(listed)
    found = block_names.read_list(lambda most: (header.tobuf() + listed)[:most])
    assert found in (None, [])
    assert block_names.read_list(lambda most: b"too short"[:most]) is None


def content(span: ByteRange) -> bytes:
    assert span.size is not None
    return span.path.read_bytes()[span.offset : span.offset + span.size]


def test_the_bytes_of_a_block_have_not_changed(tmp_path: Path) -> None:
    """Changing them would change every large library: do so only on purpose."""
    members = spans(tmp_path, {"a/ü.jpg": b"one", "b" * 300: b"two" * 1000, "c [1].png": b""})
    whole = b"".join(blocks.block(members).pieces())
    with tarfile.open(fileobj=io.BytesIO(whole)) as archive:
        pictures = ["a/%C3%BC.jpg", "b" * 254 + "%/" + "b" * 46, "c %5B1%5D.png"]
        assert [member.name for member in archive] == ["%names.jsonl", *pictures]
    assert hashlib.sha256(whole).hexdigest() == "b9d9191ffe98b0491485743097ab363331f7cbabad978c3c5c0addbfb7d203d0"


@given(st.text(" abc/%.", max_size=120), st.integers(0, 2 * 8**11) | st.sampled_from((8**11 - 1, 8**11)))
def test_headers_are_those_of_tarfile(name: str, size: int) -> None:
    member = tarfile.TarInfo(name)
    member.size = size
    member.mode = 0o644
    assert blocks._header(name, size) == member.tobuf(tarfile.PAX_FORMAT)


def test_pictures_of_several_files_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "xyz"]
    for file in files:
        file.write_bytes(file.name.encode() * 100)
    members = {
        f"{number}.jpg": ByteRange(files[number % 3], number, None if number % 2 else number) for number in range(10)
    }
    block = tmp_path / "block.tar"
    block.write_bytes(b"".join(blocks.block(members).pieces()))
    read = blocks.read(block)
    assert list(read) == sorted(members)
    assert [read[name].size for name in members] == [100 - n if n % 2 else n for n in range(10)]
    assert all(set(content(read[name])) <= set(members[name].path.name.encode()) for name in members)


def test_a_picture_that_changes_while_read_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "picture"
    file.write_bytes(b"x" * 100)
    with pytest.raises(OSError, match="shorter"):
        blocks.block({"picture": ByteRange(file, 0, 200)})
    made = blocks.block({"picture": ByteRange(file)})
    for content, what in ((b"y" * 100, "changed"), (b"x" * 99, "shorter")):
        file.write_bytes(content)
        with pytest.raises(OSError, match=what):
            list(made.pieces())


def test_invalid_blocks_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "block.tar"
    file.write_bytes(b"not a tar file, but longer than one block of it" * 20)
    with pytest.raises(tarfile.TarError):
        blocks.read(file)
