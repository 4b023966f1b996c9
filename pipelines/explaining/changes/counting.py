"""The number of answers that differ between two commits of `render`, counted once for each pair of files."""

from dataclasses import dataclass
from hashlib import sha256

from pipelines.client.history import FileChange, History, Pair
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.explaining.changes import replies
from pipelines.library.kept import Kept
from pipelines.library.results import ANSWERS, REPO

_KEY = b"answers-1:"


@dataclass(frozen=True, slots=True)
class Count:
    """Queries by the effect of a change: their neighbours are others or in another order; they are new; they are
    gone."""

    changed: int = 0
    new: int = 0
    gone: int = 0


class Counts:
    """Counts the answers of one project. kept: see `pipelines.library.kept`."""

    def __init__(self, connection: Connection, kept: Kept) -> None:
        self._connection = connection
        self._history = History(connection)
        self._kept = kept

    def between(self, new: str, old: str) -> Count:
        """The answers of one commit of `render` beside those of an older one, "" for none."""
        pairs = answers_files(self._history, new, old)
        found = [self._counted(each, new, old) for each in pairs]
        self._kept.save()
        return Count(*(sum(numbers) for numbers in zip(*found, strict=True))) if found else Count()

    def _counted(self, pair: Pair, new: str, old: str) -> tuple[int, int, int]:
        hashes = f"{pair.old.hash if pair.old else '-'} {pair.new.hash if pair.new else '-'}"
        key = _KEY + sha256(hashes.encode()).digest()
        known = self._kept.get(key)
        if known is None:
            files = self._read(pair.old, old), self._read(pair.new, new)
            before, after = replies.differing(*files)
            same = len(before) < len(files[0])
            matched = replies.match(replies.parse("", before), replies.parse("", after), same)
            numbers = sum(1 for _ in matched.differing()), len(matched.new), len(matched.gone)
            known = dict(zip(("changed", "new", "gone"), map(str, numbers), strict=True))
            self._kept.put(key, known)
        return int(known["changed"]), int(known["new"]), int(known["gone"])

    def _read(self, file: FileChange | None, commit: str) -> bytes:
        return Repository(self._connection, REPO, commit).read(file.path) if file is not None else b""


def answers_files(history: History, new: str, old: str) -> list[Pair]:
    """The files of answers in which two commits of `render` differ; `old` "" stands for an empty one."""
    pairs = history.pairs(REPO, new, old) if old else [Pair(each.path, None, each) for each in history.files(REPO, new)]
    return [each for each in pairs if each.path.endswith(f"/{ANSWERS}")]
