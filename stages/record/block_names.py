"""The names of ingest blocks, and the block that a picture belongs to.

Blocks are the leaves of a binary tree over the hashes of pictures' true names; a leaf is named by its prefix, a text of
0s and 1s.
"""

import hashlib
from collections.abc import Collection

from stages.record.pfs_names import block_name, is_block

BITS = 64
"""The length of a name's hash."""


def bits_of(name: str) -> str:
    """The 64 bits, as 0s and 1s, that place a picture's true name in the tree."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return f"{int.from_bytes(digest[: BITS // 8], 'big'):0{BITS}b}"


def file_name(prefix: str) -> str:
    """The PFS name of the block of all names whose bits start with `prefix` (at most 63 bits).

    The digits are the prefix, a 1 that ends it, and zeros.
    """
    return block_name(f"{int((prefix + '1').ljust(BITS, '0'), 2):016x}")


def prefix_of(name: str) -> str | None:
    """The prefix of a block's PFS name; None for any other name."""
    digits = name.removeprefix("%block-").removesuffix(".tar")
    if not is_block(name) or not int(digits, 16):
        return None
    return f"{int(digits, 16):0{BITS}b}".rstrip("0")[:-1]


def home(name: str, prefixes: Collection[str]) -> str | None:
    """The prefix whose block a picture belongs to, if any."""
    if not prefixes:  # as for each picture of a new library
        return None
    bits = bits_of(name)
    return next((bits[:length] for length in range(BITS) if bits[:length] in prefixes), None)
