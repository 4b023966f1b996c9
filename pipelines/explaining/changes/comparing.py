"""The answers of two moments compared: the queries whose neighbours differ, each difference with its reasons, and
everything that changed in between."""

from dataclasses import dataclass

from pipelines.client import backbones
from pipelines.client.history import FileChange, History
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.explaining.changes import reasons, replies
from pipelines.explaining.changes.contents import PREPROCESS, Changed, Contents
from pipelines.explaining.changes.counting import answers_files
from pipelines.explaining.changes.reasons import Causes, Difference
from pipelines.explaining.changes.replies import Matched, Reply, Two
from pipelines.explaining.changes.settings import Setting, differences
from pipelines.explaining.changes.states import State
from pipelines.library.kept import Kept
from pipelines.library.results import REPO


@dataclass(frozen=True, slots=True)
class Question:
    """A query whose neighbours differ, and the differences in the order of their ranks."""

    two: Two
    differences: tuple[Difference, ...]

    @property
    def entry(self) -> str:
        """Its entry, a PFS name."""
        return self.two.new.entry


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two moments. questions: those with the most differences first. pictures: of the library, None if preprocess did
    not compute them. model: the backbones in words, None for the same one. settings: parameters that differ. new and
    gone: queries that are only in one of the two."""

    old: State
    new: State
    questions: tuple[Question, ...]
    new_queries: tuple[Reply, ...]
    gone_queries: tuple[Reply, ...]
    pictures: Changed | None
    model: tuple[str, str] | None
    settings: tuple[Setting, ...]

    @property
    def reasons(self) -> dict[str, int]:
        """The number of questions by the reason of a difference, the most frequent reason first."""
        found: dict[str, int] = {}
        for question in self.questions:
            for reason in {reason for each in question.differences for reason, _ in each.reasons}:
                found[reason] = found.get(reason, 0) + 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def compare(connection: Connection, old: State, new: State, kept: Kept) -> Comparison:
    """Compares the answers of two moments, `old` and `new`."""
    matched = _matched(connection, old, new)
    pictures = _pictures(connection, old, new, kept)
    before, after = (backbones.described(connection, each.commits.get(backbones.REPO, "")) for each in (old, new))
    model = (before, after) if before != after else None
    settings = differences((old.versions.get(name), each) for name, each in sorted(new.versions.items()))
    known = pictures or Changed()
    causes = Causes(frozenset(known.added), frozenset(known.changed), frozenset(known.removed), model, settings)
    found = [Question(two, tuple(reasons.differences(two, matched, causes))) for two in matched.differing()]
    found.sort(key=lambda each: (-len(each.differences), each.entry, each.two.new.sources))
    return Comparison(old, new, tuple(found), matched.new, matched.gone, pictures, model, settings)


def _matched(connection: Connection, old: State, new: State) -> Matched:
    before: list[Reply] = []
    after: list[Reply] = []
    same = False
    for pair in answers_files(History(connection), new.id, old.id) if old.id != new.id else ():
        entry = pair.path.split("/")[1]
        files = _read(connection, pair.old, old), _read(connection, pair.new, new)
        differing = replies.differing(*files)
        same = same or len(differing[0]) < len(files[0])
        before += replies.parse(entry, differing[0])
        after += replies.parse(entry, differing[1])
    return replies.match(before, after, same)


def _read(connection: Connection, file: FileChange | None, state: State) -> bytes:
    return Repository(connection, REPO, state.id).read(file.path) if file is not None else b""


def _pictures(connection: Connection, old: State, new: State, kept: Kept) -> Changed | None:
    repo, pipeline = "images", PREPROCESS["images"]
    if repo not in new.commits or pipeline not in new.commits:
        return None
    computed = new.commits[pipeline], old.commits.get(pipeline, "")
    if new.commits[repo] == old.commits.get(repo):
        return Changed()
    return Contents(connection, kept).between(repo, new.commits[repo], old.commits.get(repo, ""), computed)
