"""The history of a library as rows."""

from typing import Any

import pyarrow as pa

from lookalike.rows import Rows
from pipelines.analysis.changes.library_history import LibraryChange
from stages.datum import text_format

_SHORT = 12
"""Digits of an id: enough for `Library.at`."""

_COUNTED = ("added", "changed", "removed")


class Changes(Rows[LibraryChange]):
    """Changes of the library, the newest first; see `lookalike history`."""

    schema = pa.schema(
        [
            pa.field("commit", pa.string(), nullable=False),
            pa.field("started", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("repo", pa.string(), nullable=False),
            pa.field("author", pa.string(), nullable=False),
            pa.field("description", pa.string(), nullable=False),
            ("added", pa.int64()),
            ("changed", pa.int64()),
            ("removed", pa.int64()),
            ("answers_changed", pa.int64()),
        ]
    )

    heads = ("commit", "when", "what", "by", "pictures", "answers")

    def record(self, row: LibraryChange) -> dict[str, Any]:
        """See Rows."""
        pictures = row.pictures
        return {
            "commit": row.id,
            **{name: getattr(row, name) for name in ("started", "repo", "author", "description")},
            **{name: None if pictures is None else len(getattr(pictures, name)) for name in _COUNTED},
            "answers_changed": None if row.answers is None else row.answers.changed,
        }

    def __repr__(self) -> str:
        return "\n".join("  ".join(line).rstrip() for line in self.lines())

    def lines(self) -> list[list[str]]:
        """See Rows."""
        found = []
        for each in self:
            values = self.record(each)
            numbers = [f"{values[name]:,} {name}" for name in _COUNTED if values[name]]
            answers = values["answers_changed"]
            found.append(
                [
                    each.id[:_SHORT],
                    f"{each.started:%Y-%m-%d %H:%M} UTC",
                    each.repo,
                    text_format.visible(": ".join(filter(None, (each.author, each.description)))),
                    ", ".join(numbers),
                    "" if answers is None else f"{answers:,} changed",
                ]
            )
        return found
