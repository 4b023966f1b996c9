import hashlib
import json
from functools import partial

import pytest

from stages.record import block_names
from stages.record.pfs_names import is_block
from stages.record.url_records import (
    OtherBytesError,
    UrlRecord,
    format_records,
    is_file,
    is_store,
    last_stored,
    parse_records,
    verify,
)


def record(path: str = "a/b.jpg", content: bytes = b"x", url: str = "https://e.org/b.jpg") -> UrlRecord:
    return UrlRecord(path, url, '"1"', hashlib.sha256(content).hexdigest(), len(content))


def test_records_come_back_as_they_were() -> None:
    records = [record("ä \udcff.jpg"), record("z.png", url="s3://bucket/z%20z.png")]
    assert parse_records(format_records(records)) == records
    assert parse_records(b"\n" + format_records(records) + b"\n") == records
    assert parse_records(b"") == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sha256": "AB"}, "64 hex"),
        ({"url": "file:///etc/passwd"}, "url begins with"),
        ({"url": "http:///x"}, "url begins with"),
        ({"path": ""}, "path must not be empty"),
        ({"size": -1}, "number of bytes"),
        ({"size": True}, "number of bytes"),
        ({"etag": None}, "texts"),
        ({"more": 1}, "is not a record"),
    ],
)
def test_anything_else_is_refused_with_its_line(change: dict[str, object], reason: str) -> None:
    line = json.dumps(record()._asdict() | change).encode()
    with pytest.raises(ValueError, match=f"line 2.*{reason}"):
        parse_records(format_records([record("first.jpg")]) + line)


@pytest.mark.parametrize("line", [b"[]", b"7", b"{", b"\xff", b'{"path": "a"}'])
def test_a_line_that_is_not_a_record_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="line 1 is not a record"):
        parse_records(line)


def test_a_name_is_listed_once() -> None:
    with pytest.raises(ValueError, match=r"line 2: a/b\.jpg is listed twice"):
        parse_records(format_records([record(), record()]))


def test_other_bytes_are_told_apart() -> None:
    verify(record(content=b"one"), b"one")
    for content in (b"two", b"", b"one more"):
        with pytest.raises(OtherBytesError, match=r"https://e\.org/b\.jpg has another file"):
            verify(record(content=b"one"), content)


def head(content: bytes, most: int) -> bytes:
    return content[:most]


def test_a_block_of_records_is_a_block_that_is_its_own_list() -> None:
    many = [record(f"{number:04}.jpg", b"%d" % number) for number in range(2000)]
    for records in (many, many[:1]):
        content = format_records(records)
        name = block_names.listed_name(content, ".urls.jsonl")
        assert is_block(name) and is_file(name) and not block_names.is_earlier(name)
        found = block_names.read_list(partial(head, content))
        assert found == [block_names.BlockMember(each.path, each.sha256, each.size) for each in records]
    assert not is_file("%block-0123456789abcdef.tar")
    assert block_names.read_list(partial(head, b"{broken")) is None


def test_buckets_are_told_by_their_scheme() -> None:
    assert [is_store(each) for each in ("S3://b/k", "gs://b/k", "az://b/k", "https://b/k")] == [True] * 3 + [False]


@pytest.mark.parametrize(
    ("stored", "at_urls", "gone", "last"),
    [
        ("a", "u", "a", "a"),
        ("ab", "u", "a", ""),  # both stored: one may go
        ("ab", "u", "ab", "ab"),  # and not both
        ("a", "uv", "au", "a"),
        ("a", "u", "u", ""),
        ("", "uv", "u", ""),  # none is stored
        ("a", "u", "au", ""),  # all of them: somebody wants the picture away
        ("ab", "", "a", ""),
        ("a", "u", "x", ""),
    ],
)
def test_the_last_stored_of_a_group_is_found(stored: str, at_urls: str, gone: str, last: str) -> None:
    assert last_stored([*stored, *at_urls], {*gone}, {*at_urls}) == {*last}
