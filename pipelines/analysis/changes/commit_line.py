"""The commits of a repo in a line, each with the one before it, read from the newest as far as they are asked for."""

from collections.abc import Iterator
from datetime import datetime

from pipelines.client.commit_history import CommitRecord


class CommitLine:
    """The commits of a repo, read from the newest as far as they are asked for."""

    def __init__(self, records: Iterator[CommitRecord]) -> None:
        self._rest = with_parents(records)
        self._known: dict[str, tuple[CommitRecord, CommitRecord | None]] = {}
        self._oldest: datetime | None = None

    def of(self, id_: str, since: datetime) -> tuple[CommitRecord, CommitRecord | None] | None:
        """The commit of a set that began at a time, with the commit before it; None if there is none."""
        while id_ not in self._known and (self._oldest is None or self._oldest >= since):
            if not self._read():
                break
        return self._known.get(id_)

    def before(self, record: CommitRecord) -> CommitRecord | None:
        """The commit before one that was found."""
        while record.id not in self._known and self._read():
            pass
        return self._known[record.id][1] if record.id in self._known else None

    def _read(self) -> bool:
        found = next(self._rest, None)
        if found is not None:
            self._known[found[0].id] = found
            self._oldest = found[0].started
        return found is not None


def with_parents(records: Iterator[CommitRecord]) -> Iterator[tuple[CommitRecord, CommitRecord | None]]:
    """Each commit with the one before it."""
    current = next(records, None)
    while current is not None:
        before = next(records, None)
        yield current, before
        current = before
