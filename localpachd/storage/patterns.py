"""Patterns that clients send, compiled: a malformed one is the client's error.

The dialect of globs is `speclang.globs`. Regular expressions are run by Python's `re`, where Pachyderm has Go's RE2.
"""

import re

from localpachd.errors import InvalidArgument
from speclang.globs import Glob, GlobError


def glob(pattern: str) -> Glob:
    """Raises InvalidArgument for a malformed glob."""
    try:
        return Glob(pattern)
    except GlobError as error:
        raise InvalidArgument(str(error)) from None


def regular_expression(pattern: str) -> re.Pattern[str]:
    """Raises InvalidArgument for an expression that Python cannot compile."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidArgument(f"invalid regular expression {pattern!r}: {error}") from None
