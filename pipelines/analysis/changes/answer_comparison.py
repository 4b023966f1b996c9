"""The answers of two moments compared: the queries whose neighbours differ, each difference with its reasons, and
everything that changed in between."""

from dataclasses import dataclass
from functools import reduce

from pipelines.analysis import query_answers
from pipelines.analysis.changes import difference_reasons
from pipelines.analysis.changes.answer_counts import answers_files, read_answers
from pipelines.analysis.changes.commit_pictures import PREPROCESS, CommitPictures, PictureChanges
from pipelines.analysis.changes.difference_reasons import ChangeCauses, NeighbourDifference
from pipelines.analysis.changes.library_state import LibraryState
from pipelines.analysis.changes.pipeline_versions import SettingChange, differences
from pipelines.analysis.query_answers import AnswerPair, QueryAnswer, QueryMatch
from pipelines.client import backbones
from pipelines.client.commit_history import CommitHistory
from pipelines.client.server.connection import Connection
from pipelines.library.content_cache import ContentCache
from pipelines.library.snapshots import FETCHED, REPO


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """A query whose neighbours differ, and the differences in the order of their ranks."""

    two: AnswerPair
    differences: tuple[NeighbourDifference, ...]

    @property
    def entry(self) -> str:
        """Its entry, a PFS name."""
        return self.two.new.entry


@dataclass(frozen=True, slots=True)
class AnswerComparison:
    """Two moments. questions: those with the most differences first. pictures: of the library, None if preprocess did
    not compute them. model: the backbones in words, None for the same one. settings: parameters that differ. new and
    gone: queries that are only in one of the two."""

    old: LibraryState
    new: LibraryState
    questions: tuple[QueryDifference, ...]
    new_queries: tuple[QueryAnswer, ...]
    gone_queries: tuple[QueryAnswer, ...]
    pictures: PictureChanges | None
    model: tuple[str, str] | None
    settings: tuple[SettingChange, ...]

    @property
    def reasons(self) -> dict[str, int]:
        """The number of questions by the reason of a difference, the most frequent reason first."""
        found: dict[str, int] = {}
        for question in self.questions:
            for reason in {reason for each in question.differences for reason, _ in each.reasons}:
                found[reason] = found.get(reason, 0) + 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def compare(connection: Connection, old: LibraryState, new: LibraryState, kept: ContentCache) -> AnswerComparison:
    """Compares the answers of two moments, `old` and `new`."""
    matched = _matched(connection, old, new)
    pictures = _pictures(connection, old, new, kept)
    before, after = (backbones.describe_commit(connection, each.commits.get(backbones.REPO, "")) for each in (old, new))
    model = (before, after) if before != after else None
    settings = differences((old.versions.get(name), each) for name, each in sorted(new.versions.items()))
    known = pictures or PictureChanges()
    causes = ChangeCauses(frozenset(known.added), frozenset(known.changed), frozenset(known.removed), model, settings)
    found = [
        QueryDifference(two, tuple(difference_reasons.differences(two, matched, causes))) for two in matched.differing()
    ]
    found.sort(key=lambda each: (-len(each.differences), each.entry, each.two.new.sources))
    return AnswerComparison(old, new, tuple(found), matched.new, matched.gone, pictures, model, settings)


def _matched(connection: Connection, old: LibraryState, new: LibraryState) -> QueryMatch:
    before: list[QueryAnswer] = []
    after: list[QueryAnswer] = []
    same = False
    for pair in answers_files(CommitHistory(connection), new.id, old.id) if old.id != new.id else ():
        entry = pair.path.split("/")[1]
        files = read_answers(connection, pair.old), read_answers(connection, pair.new)
        differing = query_answers.differing(*files)
        same = same or len(differing[0]) < len(files[0])
        before += query_answers.parse(entry, differing[0])
        after += query_answers.parse(entry, differing[1])
    return query_answers.match(before, after, same)


def _pictures(
    connection: Connection, old: LibraryState, new: LibraryState, kept: ContentCache
) -> PictureChanges | None:
    pipeline = PREPROCESS[REPO]
    if REPO not in new.commits or pipeline not in new.commits:
        return None
    computed = new.commits[pipeline], old.commits.get(pipeline, "")
    contents = CommitPictures(connection, kept)
    found = [
        contents.between(repo, new.commits[repo], old.commits.get(repo, ""), computed)
        for repo in (REPO, FETCHED)
        if repo in new.commits and new.commits[repo] != old.commits.get(repo)
    ]
    return reduce(PictureChanges.joined, found, PictureChanges())
