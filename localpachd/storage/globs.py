"""Globs that clients send: a malformed one is the client's error. The dialect itself is `speclang.globs`."""

from localpachd.errors import InvalidArgument
from speclang.globs import Glob, GlobError


def compiled(pattern: str) -> Glob:
    """The compiled form of a pattern. Raises InvalidArgument for a malformed one."""
    try:
        return Glob(pattern)
    except GlobError as error:
        raise InvalidArgument(str(error)) from None
