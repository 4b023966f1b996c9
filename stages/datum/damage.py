"""Errors that damaged or hostile bytes cause, told apart from the machine's own. Knows no format."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONGEST_HEADER = 1000
"""Bytes of the header of an array in NumPy's format, which is read as Python: ours have 200, and thousands of signs
would exhaust the memory of Python's parser."""


def is_damage(failure: Exception) -> bool:
    """Whether the bytes that were read are to blame, as for any error but the machine's own: too little memory, a disk
    that cannot be read. The libraries that read archives and tables raise every kind of error on hostile bytes.
    """
    if isinstance(failure, OSError):
        return failure.errno in (None, errno.EINVAL)  # EINVAL: a seek to a nonsensical offset
    return not isinstance(failure, MemoryError)


@contextmanager
def damage_as(described: Callable[[Exception], Exception]) -> Iterator[None]:
    """Raises what `described` makes of an error for which the bytes that are read here are to blame, unless it is of
    that type already; any other error stays."""
    try:
        yield
    except Exception as failure:
        refused = described(failure)
        if isinstance(failure, type(refused)) or not is_damage(failure):
            raise
        raise refused from failure
