"""The names of ingest blocks, and the list of its pictures with which a block begins. Only the standard library.

A block is named by a hash of that list, which has the true name, the hash and the size of every picture: equal content
gives equal names. A block of records (stages.record.url_records) is such a list, with the URLs, and nothing else.
Blocks of earlier versions have no list. They are the leaves of a binary tree over the hashes of true
names, each named by its prefix, so a name alone tells which of them can hold it.
"""

import hashlib
import json
import tarfile
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from stages.record import url_records
from stages.record.pfs_names import MEMBERS_FILE, block_name

_BITS = 64
_FRONT = 64 << 10
"""Bytes that hold the list of most blocks."""

_WHOLE = 1 << 30
"""More bytes than a block of records has."""


class BlockMember(NamedTuple):
    """A picture of a block: its true name, the SHA-256 of its bytes in hex digits, and its size in bytes."""

    path: str
    sha256: str
    size: int


def format_list(members: Iterable[BlockMember]) -> bytes:
    """The list of a block's pictures, which are sorted by name."""
    return "".join(f"{json.dumps(each._asdict())}\n" for each in members).encode("ascii")


def listed_name(listed: bytes, suffix: str = ".tar") -> str:
    """The PFS name of the block with this list, or of the block of records that it is. Its digits are those of an
    odd number, which tells it from the blocks of earlier versions."""
    digits = hashlib.sha256(listed).hexdigest()[: _BITS // 4]
    return block_name(f"{int(digits, 16) | 1:016x}", suffix)


def stable_name(text: str) -> str:
    """The PFS name of a block that keeps its name when its pictures change: by a text that tells it from others."""
    return listed_name(text.encode("utf-8"))


def read_list(read: Callable[[int], bytes]) -> list[BlockMember] | None:
    """The list at the beginning of a block; None if there is none, as in a block of an earlier version. read: gives the
    first bytes of the block, so many."""
    front = read(_FRONT)
    try:
        if front.startswith(b"{"):
            whole = front if len(front) < _FRONT else read(_WHOLE)
            return [BlockMember(each.path, each.sha256, each.size) for each in url_records.parse_records(whole)]
        header = tarfile.TarInfo.frombuf(front[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
        if header.name != MEMBERS_FILE:
            return None
        end = tarfile.BLOCKSIZE + header.size
        front = front if len(front) >= end else read(end)
        rows = map(json.loads, front[tarfile.BLOCKSIZE : end].splitlines())
        return [BlockMember(str(row["path"]), str(row["sha256"]), int(row["size"])) for row in rows]
    except (tarfile.TarError, ValueError, KeyError, TypeError):  # another program's
        return None


def is_earlier(name: str) -> bool:
    """Whether a block, given by its PFS name, has the form of an earlier version's."""
    return int(name.rpartition("/")[2].removeprefix("%block-").partition(".")[0], 16) % 2 == 0


def home(name: str, earlier: Collection[str]) -> str | None:
    """The one of these blocks of earlier versions, given by their PFS names, that would hold a true name, if any."""
    if not earlier:
        return None
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    bits = f"{int.from_bytes(digest[: _BITS // 8], 'big'):0{_BITS}b}"
    possible = (file_name(bits[:length]) for length in range(_BITS))
    return next((each for each in possible if each in earlier), None)


def file_name(prefix: str) -> str:
    """The PFS name of an earlier version's block, of all names whose bits start with `prefix` (at most 63 bits): the
    prefix, a 1 that ends it, and zeros."""
    return block_name(f"{int((prefix + '1').ljust(_BITS, '0'), 2):016x}")
