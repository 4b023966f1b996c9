"""The number of answers that differ between two commits of `render`, counted once for each pair of files."""

from dataclasses import dataclass
from hashlib import sha256

from pipelines.analysis import query_answers
from pipelines.client.commit_history import CommitHistory, FilePair
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.stored_file import StoredFile
from pipelines.library.content_cache import ContentCache
from pipelines.library.result_sheets import ANSWERS, REPO

_KEY = b"answers-1:"


@dataclass(frozen=True, slots=True)
class AnswerCount:
    """Queries by the effect of a change: their neighbours are others or in another order; they are new; they are
    gone."""

    changed: int = 0
    new: int = 0
    gone: int = 0


class AnswerCounts:
    """Counts the answers of one project. kept: see `pipelines.library.content_cache`."""

    def __init__(self, connection: Connection, kept: ContentCache) -> None:
        self._connection = connection
        self._history = CommitHistory(connection)
        self._kept = kept

    def between(self, new: str, old: str) -> AnswerCount:
        """The answers of one commit of `render` beside those of an older one, "" for none."""
        pairs = answers_files(self._history, new, old)
        found = [self._counted(each) for each in pairs]
        self._kept.save()
        return AnswerCount(*(sum(numbers) for numbers in zip(*found, strict=True))) if found else AnswerCount()

    def _counted(self, pair: FilePair) -> tuple[int, int, int]:
        hashes = f"{pair.old.hash if pair.old else '-'} {pair.new.hash if pair.new else '-'}"
        key = _KEY + sha256(hashes.encode()).digest()
        known = self._kept.get(key)
        if known is None:
            files = read_answers(self._connection, pair.old), read_answers(self._connection, pair.new)
            before, after = query_answers.differing(*files)
            same = len(before) < len(files[0])
            matched = query_answers.match(query_answers.parse("", before), query_answers.parse("", after), same)
            numbers = sum(1 for _ in matched.differing()), len(matched.new), len(matched.gone)
            known = dict(zip(("changed", "new", "gone"), map(str, numbers), strict=True))
            self._kept.put(key, known)
        return int(known["changed"]), int(known["new"]), int(known["gone"])


def answers_files(history: CommitHistory, new: str, old: str) -> list[FilePair]:
    """The files of answers in which two commits of `render` differ; `old` "" stands for an empty one."""
    return [each for each in history.pairs(REPO, new, old) if each.path.endswith(f"/{ANSWERS}")]


def read_answers(connection: Connection, file: StoredFile | None) -> bytes:
    """The content of such a file; b"" for none."""
    return Repository(connection, REPO, file.commit).read(file.path) if file is not None else b""
