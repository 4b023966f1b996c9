"""Clients' regular expressions, run by Python's `re`; Pachyderm runs them by Go's RE2."""

import re

from localpachd.errors import InvalidArgument


def compiled(pattern: str) -> re.Pattern[str]:
    """The expression. Raises InvalidArgument if Python cannot compile it."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidArgument(f"invalid regular expression {pattern!r}: {error}") from None
