"""The texts of a query entry, each a query like a picture: from .txt files, or from the entry's question.

Owns the file that preprocess writes for them and features passes on, and their ids. Knows no vectors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stages.datum.contract import StageError
from stages.record.pfs_names import TEXTS_FILE
from stages.record.sources import Source, unite


class QueryText(NamedTuple):
    """A text that is asked about. id: 64 hex digits, which follow from the words alone, as a picture's from its pixels.
    sources: its files, at least one; for words that an entry's question holds, that file."""

    id: str
    text: str
    without: tuple[str, ...]
    sources: tuple[Source, ...]
    unread: str = ""  # the end of the text that the model does not read; known after features

    @property
    def said(self) -> dict[str, Any]:
        """What was asked, for an answer: without what is empty."""
        told = {"text": self.text, "without": list(self.without), "unread": self.unread}
        return {name: value for name, value in told.items() if value}


def make(text: str, without: Sequence[str], source: Source) -> QueryText:
    """A text with its id."""
    words = _line({"text": text, "without": list(without)})
    return QueryText(hashlib.sha256(words).hexdigest(), text, tuple(without), (source,))


def write(path: Path, texts: Iterable[QueryText]) -> None:
    """Writes texts as JSON lines sorted by id, making the directory; those of one id are one, with all sources."""
    found: dict[str, QueryText] = {}
    for each in texts:
        known = found.get(each.id, each)
        found[each.id] = each._replace(sources=unite(known.sources, each.sources))
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (each._asdict() | {"sources": [source._asdict() for source in each.sources]} for each in found.values())
    path.write_bytes(b"".join(map(_line, sorted(lines, key=lambda each: str(each["id"])))))


def read(directory: Path) -> list[QueryText]:
    """The texts of an entry, by id, from the directory that preprocess or features wrote for it; [] without any. Raises
    StageError for a file that `write` did not write."""
    for path in directory.glob(f"*{TEXTS_FILE}"):
        try:
            return [_read(json.loads(line)) for line in path.read_bytes().splitlines()]
        except (ValueError, KeyError, TypeError) as failure:
            raise StageError(
                f"{path.name} is not a list of texts ({failure}): lookalike deploy --reprocess preprocess-queries"
            ) from failure
    return []


def _read(line: dict[str, Any]) -> QueryText:
    sources = tuple(Source(**each) for each in line["sources"])
    return QueryText(**{**line, "without": tuple(line["without"]), "sources": sources})


def _line(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
