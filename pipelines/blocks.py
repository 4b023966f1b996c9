"""Ingest blocks: tar archives of at most 400 pictures, so that a large library is not one datum for each.

Which block a picture is in follows from its name alone: blocks are the leaves of a binary tree over the hashes of
names, and a leaf that would grow beyond the limit becomes two. So the same library has the same blocks whatever the
order in which it grew, as long as it only grows, and a changed picture changes one block.
"""

import hashlib
import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from typing import IO

from stages.names import block_name, escape_path, is_block, unescape

LIMIT = 400
"""Pictures in a block at most."""

_BITS = 64


def bits_of(name: str) -> str:
    """The 64 bits, as 0s and 1s, that place a picture's true name in the tree."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return f"{int.from_bytes(digest[: _BITS // 8], 'big'):0{_BITS}b}"


def file_name(prefix: str) -> str:
    """The PFS name of the block of all names whose bits start with `prefix` (at most 63 bits).

    The digits are the prefix, a 1 that ends it, and zeros.
    """
    return block_name(f"{int((prefix + '1').ljust(_BITS, '0'), 2):016x}")


def prefix_of(name: str) -> str | None:
    """The prefix of a block's PFS name; None when it is no block's."""
    bare = name.strip("/")
    if not is_block(bare):
        return None
    digits = bare.removeprefix("%block-").removesuffix(".tar")
    return f"{int(digits, 16):0{_BITS}b}".rstrip("0")[:-1]


def home(name: str, prefixes: Iterable[str]) -> str | None:
    """The prefix among these in whose block a picture belongs, if any."""
    bits = bits_of(name)
    return next((prefix for prefix in prefixes if bits.startswith(prefix)), None)


def divide(names: Iterable[str], prefix: str = "") -> dict[str, list[str]]:
    """The names of one leaf as the leaves they need, by prefix: itself, or its parts when it holds too many."""
    return _divide(sorted((bits_of(name), name) for name in names), prefix)


def _divide(placed: list[tuple[str, str]], prefix: str) -> dict[str, list[str]]:
    if len(placed) <= LIMIT or len(prefix) == _BITS - 1:
        return {prefix: sorted(name for _, name in placed)} if placed else {}
    leaves: dict[str, list[str]] = {}
    for bit in "01":
        longer = prefix + bit
        leaves |= _divide([each for each in placed if each[0].startswith(longer)], longer)
    return leaves


def write(names: Iterable[str], contents: Mapping[str, bytes], to: IO[bytes]) -> None:
    """Writes the pictures with these true names as a block: equal pictures give equal bytes."""
    with tarfile.open(fileobj=to, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(names):
            member = tarfile.TarInfo(escape_path(name))
            member.size = len(contents[name])
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(contents[name]))


def read(block: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """The pictures of a block: true name and content."""
    with tarfile.open(fileobj=block, mode="r:") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                yield unescape(member.name), file.read()
