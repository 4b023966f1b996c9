"""The marks of files and directories, as chattr(1) sets them. Knows nothing of what they are for.

Not every file system has marks, and none may be set on files of others: then nothing happens.
"""

import fcntl
import struct
from contextlib import suppress

# Of <linux/fs.h>.
_GET, _SET = 0x80086601, 0x40086602

LOCKED = 0x10 | 0x20
"""Keeps even root from changing a file."""

SPREAD = 0x20000
"""Gives each directory in a directory a place on the disk apart from the others: see ext4's Orlov allocator."""


def change(handle: int, put: int = 0, take: int = 0) -> None:
    """Puts marks on an open file or directory, and takes others from it."""
    with suppress(OSError):
        (marks,) = struct.unpack("@l", fcntl.ioctl(handle, _GET, struct.pack("@l", 0)))
        changed = (marks | put) & ~take
        if changed != marks:
            fcntl.ioctl(handle, _SET, struct.pack("@l", changed))
