"""The form in which PFS holds a path and matches a pattern."""

import posixpath


def clean(path: str) -> str:
    """A path with a leading slash and no trailing one: "" and "." become "/", "a//b/" becomes "/a/b"."""
    shortest = posixpath.normpath(path)
    return "/" if shortest == "." else "/" + shortest.strip("/")
