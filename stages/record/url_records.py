"""Records of pictures that stay where they are: the URL of each and what its bytes are. A file of them is put in place
of the pictures, and preprocess fetches these. Only the standard library; fetches nothing.

A line is a JSON object {"path": true name, "url": URL, "etag": its version at the server or "", "sha256": 64 hex
digits, "size": bytes}. The lines are sorted by path.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Set as AbstractSet
from typing import NamedTuple
from urllib.parse import urlsplit

STORES = ("s3", "gs", "az")
"""The schemes of the URLs of buckets."""

SUFFIX = ".urls.jsonl"
"""The ending of a file of records."""

LIST = ".txt"
"""The ending of a list of URLs at a URL: one on each line, but for empty lines and those that begin with #."""

_URL = re.compile(r"(?:https?|s3|gs|az)://[^/]", re.IGNORECASE)
_DIGEST = re.compile(r"[0-9a-f]{64}")


class UrlRecord(NamedTuple):
    """A picture at a URL: its true name in the library, where it is, the version that its server states, "" for none,
    the SHA-256 of its bytes in hex digits, and their number."""

    path: str
    url: str
    etag: str
    sha256: str
    size: int


class OtherBytesError(Exception):
    """The file at a URL is not the one that was recorded; the text says so, and is the same for every other file."""


def is_store(url: str) -> bool:
    """Whether a URL is of a bucket."""
    return urlsplit(url).scheme.lower() in STORES


def verify(record: UrlRecord, content: bytes) -> None:
    """Raises OtherBytesError unless this is the content of the picture."""
    if len(content) != record.size or hashlib.sha256(content).hexdigest() != record.sha256:
        raise OtherBytesError(
            f"{record.url} has another file than the one that was added (SHA-256 {record.sha256[:16]}…): add it again "
            "to take the new one, or remove the picture"
        )


def is_file(path: str) -> bool:
    """Whether a file of the library holds records, by its path."""
    return path.endswith(SUFFIX)


def last_stored(copies: Collection[str], gone: set[str], at_urls: AbstractSet[str]) -> set[str]:
    """Of files with the same picture, by their names, the stored ones that must not all go: those of `gone` if some of
    the others stay, and these only at URLs, where they can vanish. Else none."""
    staying = set(copies) - gone
    return (gone & set(copies)) - at_urls if staying and staying <= at_urls else set()


def format_records(records: Iterable[UrlRecord]) -> bytes:
    """The bytes of a file of records, which are sorted by path."""
    return "".join(f"{json.dumps(each._asdict())}\n" for each in records).encode("ascii")


def parse_records(content: bytes) -> list[UrlRecord]:
    """The records of a file. Raises ValueError, with the number of the line, for anything else."""
    found: dict[str, UrlRecord] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            record = _record(line, number)
            if found.setdefault(record.path, record) is not record:
                raise ValueError(f"line {number}: {record.path} is listed twice")
    return list(found.values())


def _record(line: bytes, number: int) -> UrlRecord:
    try:
        found = UrlRecord(**json.loads(line))
    except (ValueError, TypeError) as error:
        fields = ", ".join(UrlRecord._fields)
        raise ValueError(f"line {number} is not a record of a picture: it needs {fields}, and no others") from error
    texts = (found.path, found.url, found.etag, found.sha256)
    if not all(isinstance(each, str) for each in texts) or type(found.size) is not int or found.size < 0:
        raise ValueError(f"line {number}: size is a number of bytes, and the others are texts")
    if not found.path or not _URL.match(found.url) or not _DIGEST.fullmatch(found.sha256):
        raise ValueError(
            f"line {number}: path must not be empty, url begins with https://, http://, s3://, gs:// or az://, and "
            "sha256 is 64 hex digits"
        )
    return found
