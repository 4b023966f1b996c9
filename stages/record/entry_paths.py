"""The paths of query entries in features-queries: their buckets, search's units of work. Only the standard library."""

from __future__ import annotations

from stages.record import part_names

BUCKETS = 256
"""The number of buckets. A cross has a datum for each of them and each segment, however many entries there are; and an
entry that changes is searched again together with the others of its bucket."""


def bucket(entry: str) -> str:
    """The bucket of an entry, by its name in PFS: two hex digits. It depends on nothing else, so an entry keeps it."""
    return part_names.bucket(part_names.source_name(entry), BUCKETS)


def directory(entry: str) -> str:
    """The directory of an entry, by its name in PFS, without slashes at the ends."""
    return f"queries/{bucket(entry)}/{entry}"
