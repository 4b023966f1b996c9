"""Ingest blocks: the names that share one, independent of the past, and the bytes of a block."""

import hashlib
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from pipelines.library import blocks
from pipelines.library.blocks import LIMIT, ByteRange
from stages.record import block_names
from stages.record.pfs_names import is_block
from tests.example_counts import examples

NAMES = [f"photos/{number}.jpg" for number in range(2500)]
PREFIXES = st.text("01", max_size=63)


def canonical(names: Iterable[str]) -> dict[str, set[str]]:
    """The blocks of a set of names, made at once."""
    return blocks.divide(names)


class Tree:
    """A set of blocks, changed as ingest changes them."""

    def __init__(self) -> None:
        self.leaves: dict[str, set[str]] = {}

    def add(self, names: Iterable[str]) -> None:
        groups: dict[str, set[str]] = {}
        for name in names:
            prefix = block_names.home(name, self.leaves.keys())
            if prefix is None:
                prefix = blocks.free_branch(name, self.leaves)
            groups.setdefault(prefix, set()).add(name)
        for prefix, group in groups.items():
            self.leaves |= blocks.divide(self.leaves.pop(prefix, set()) | group, prefix)

    def remove(self, names: Iterable[str]) -> None:
        shrunk: dict[str, set[str]] = {}
        for name in names:
            prefix = block_names.home(name, self.leaves.keys())
            if prefix is not None and name in self.leaves[prefix]:
                shrunk.setdefault(prefix, set(self.leaves[prefix])).discard(name)
        others = self.leaves.keys() - shrunk.keys()
        written, gone = blocks.join(shrunk, others, self.leaves.__getitem__)
        assert not gone & written.keys()
        for prefix in gone:
            del self.leaves[prefix]
        self.leaves |= written


def some(lot: st.DataObject) -> list[str]:
    """A range of the names, so that there are many or few."""
    first, last = sorted((lot.draw(st.integers(0, len(NAMES))), lot.draw(st.integers(0, len(NAMES)))))
    return NAMES[first:last]


@given(st.data())
@settings(max_examples=examples(60))
def test_blocks_follow_from_the_names_alone(data: st.DataObject) -> None:
    tree, held = Tree(), set[str]()
    for removes in data.draw(st.lists(st.booleans(), min_size=1, max_size=6)):
        names = some(data)
        (tree.remove if removes else tree.add)(names)
        held = held - set(names) if removes else held | set(names)
        assert tree.leaves == canonical(held)
    assert all(0 < len(each) <= LIMIT for each in tree.leaves.values())


def test_the_limit_is_where_one_block_becomes_two() -> None:
    tree = Tree()
    tree.add(NAMES[:LIMIT])
    assert set(tree.leaves) == {""}
    tree.add(NAMES[LIMIT : LIMIT + 1])
    assert set(tree.leaves) == {"0", "1"}
    tree.remove(NAMES[:1])
    assert set(tree.leaves) == {""}
    tree.remove(NAMES)
    assert tree.leaves == {}


def test_joining_asks_only_for_neighbours() -> None:
    tree = Tree()
    tree.add(NAMES)
    deepest = max(tree.leaves, key=len)
    asked: list[str] = []

    def names_of(prefix: str) -> set[str]:
        asked.append(prefix)
        return tree.leaves[prefix]

    blocks.join({deepest: set()}, tree.leaves.keys() - {deepest}, names_of)
    assert asked == [deepest[:-1] + ("0" if deepest[-1] == "1" else "1")]


@given(PREFIXES)
def test_a_name_tells_its_prefix(prefix: str) -> None:
    name = block_names.file_name(prefix)
    assert is_block(name)
    assert block_names.prefix_of(name) == prefix


@given(st.lists(PREFIXES, unique=True))
def test_no_two_blocks_share_a_name(prefixes: list[str]) -> None:
    assert len({block_names.file_name(prefix) for prefix in prefixes}) == len(prefixes)


@pytest.mark.parametrize(
    "name",
    ["cat.jpg", "%block-", "%block-0000000000000000.tar", "%block-12.tar", "%block-ABCDEFABCDEFABCD.tar", "/", ""],
)
def test_other_names_are_not_block_names(name: str) -> None:
    assert block_names.prefix_of(name) is None


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
    block.write_bytes(b"".join(blocks.tar(members)))
    read = blocks.read(block)
    assert {name: content(span) for name, span in read.items()} == pictures
    shuffled = list(read.items())
    lot.shuffle(shuffled)
    assert b"".join(blocks.tar(dict(shuffled))) == block.read_bytes()


def content(span: ByteRange) -> bytes:
    assert span.size is not None
    return span.path.read_bytes()[span.offset : span.offset + span.size]


def test_the_bytes_of_a_block_have_not_changed(tmp_path: Path) -> None:
    """Changing them would change every large library: do so only on purpose."""
    members = spans(tmp_path, {"a/ü.jpg": b"one", "b" * 300: b"two" * 1000, "c [1].png": b""})
    whole = b"".join(blocks.tar(members))
    with tarfile.open(fileobj=io.BytesIO(whole)) as archive:
        assert [member.name for member in archive] == ["a/%C3%BC.jpg", "b" * 254 + "%/" + "b" * 46, "c %5B1%5D.png"]
    assert hashlib.sha256(whole).hexdigest() == "4a0e2501d123b9f01cb165f12ddf59fa13da9296df34889ea06a4f68117b6026"


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
    block.write_bytes(b"".join(blocks.tar(members)))
    read = blocks.read(block)
    assert list(read) == sorted(members)
    assert [read[name].size for name in members] == [100 - n if n % 2 else n for n in range(10)]
    assert all(set(content(read[name])) <= set(members[name].path.name.encode()) for name in members)


def test_a_picture_that_shrinks_while_read_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "picture"
    file.write_bytes(b"x" * 100)
    with pytest.raises(OSError, match="shorter"):
        list(blocks.tar({"picture": ByteRange(file, 0, 200)}))


def test_invalid_blocks_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "block.tar"
    file.write_bytes(b"not a tar file, but longer than one block of it" * 20)
    with pytest.raises(tarfile.TarError):
        blocks.read(file)
