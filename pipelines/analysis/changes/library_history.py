"""The history of a library: its commits and deployments, the newest first, each with what it changed.

The list of commits is read as far as it is needed, and each change is examined when it is taken.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Any

from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.analysis.changes.answer_counts import AnswerCount, AnswerCounts
from pipelines.analysis.changes.commit_pictures import PREPROCESS, CommitPictures, PictureChanges
from pipelines.analysis.changes.pipeline_versions import PipelineVersion, PipelineVersions, SettingChange, differences
from pipelines.client import backbones
from pipelines.client.backbones import REPO as MODELS
from pipelines.client.commit_history import CommitHistory, CommitRecord
from pipelines.client.commit_sets import first_id, origins
from pipelines.client.server.connection import Connection
from pipelines.library.content_cache import ContentCache
from pipelines.library.snapshots import FETCHED
from pipelines.specifications.pipeline_specs import SOURCES
from stages.record import masks

DEPLOYMENT = "pipelines"
"""Stands for the repo of a change that is a deployment."""

CHANGING = (*(each for each in SOURCES if each != masks.REPO), FETCHED)
"""The repos whose commits are changes: those of `masks` belong to commits of `images`, and of those of `fetch` the ones
in which a picture differs."""

_MOST_TICKS = 1000
"""Commits of `fetch` that are looked at: each tick of a clock makes one, and few change anything."""

_WAS = "(was "
"""Begins the part of an imported commit's description that `origins` reads."""

_ONE_DEPLOYMENT = timedelta(seconds=60)
"""Most time between two pipelines of one deployment, which makes a commit set for each."""


@dataclass(frozen=True, slots=True)
class LibraryChange:
    """A change of the library. repo: one of SOURCES, or DEPLOYMENT. ids: of its commit sets, its own first; several of
    a deployment, then the newest first, and of an import. started: when it was made (UTC), at the first server for an
    imported one; recorded: when at this one. author: "" if nobody knows. beside: the changes of other repos that were
    made in the same commit set.

    open: whether its commit is being written. error: of its commit. pictures: of images and queries; None where
    preprocess did not compute them. files: those of labels, and those of the others without `pictures`: the paths that
    were put and removed. model: the backbone before and after, in words, "" for none. created and reprocessed: of a
    deployment, the names of pipelines. answers: None where there are none, and then `state` tells why: "running" or
    "failed", for the jobs, "" if the change reaches no answers, or if they were not asked for.
    """

    repo: str
    ids: tuple[str, ...]
    started: datetime
    recorded: datetime
    author: str = ""
    description: str = ""
    open: bool = False
    error: str = ""
    pictures: PictureChanges | None = None
    files: tuple[str, ...] = ()
    model: tuple[str, str] | None = None
    settings: tuple[SettingChange, ...] = ()
    created: tuple[str, ...] = ()
    reprocessed: tuple[str, ...] = ()
    answers: AnswerCount | None = None
    state: str = ""
    beside: tuple["LibraryChange", ...] = ()

    @property
    def id(self) -> str:
        return self.ids[0]


@dataclass(slots=True)
class _Group:
    """Versions of one deployment, the newest first, with the commit of a backbone that took effect with them."""

    versions: list[PipelineVersion]
    model: CommitRecord | None = None

    def takes(self, older: PipelineVersion) -> bool:
        newer = self.versions[-1]
        return newer.id == older.id or (
            newer.started - older.started < _ONE_DEPLOYMENT
            and (newer.author, newer.description) == (older.author, older.description)
            and older.pipeline not in {each.pipeline for each in self.versions}
        )


class LibraryHistory:
    """The changes of one project's library. kept: see `pipelines.library.content_cache`."""

    def __init__(self, connection: Connection, kept: ContentCache) -> None:
        self._connection = connection
        self._history = CommitHistory(connection)
        self._contents = CommitPictures(connection, kept)
        self._counts = AnswerCounts(connection, kept)
        self._versions = PipelineVersions(connection)
        self._lines = {
            name: _CommitLine(self._history.records(name)) for name in (*PREPROCESS.values(), "render", "features")
        }

    def newest_first(
        self, repos: Sequence[str] = (*CHANGING, DEPLOYMENT), concerns: Callable[[str], bool] = lambda _: True
    ) -> Iterator[LibraryChange]:
        """The changes of these repos, without `answers`. concerns: whether an entry is looked at."""
        for _, together in groupby(self._grouped(repos), _identity):
            changes = [
                self._deployment(each) if isinstance(each, _Group) else self._commit(*each, concerns)
                for each in together
            ]
            lead, *others = sorted(changes, key=lambda each: [*SOURCES, FETCHED, DEPLOYMENT].index(each.repo))
            ids = dict.fromkeys(id for each in (lead, *others) for id in each.ids)
            yield replace(lead, ids=tuple(ids), beside=tuple(others))

    def with_answers(self, change: LibraryChange) -> LibraryChange:
        """The change with the number of answers that it made different."""
        line = self._lines["render"]
        found = [each for id_ in change.ids if (each := line.of(id_, change.recorded)) is not None]
        if not found:
            return change
        if found[0][0].finished is None or found[0][0].error:
            return replace(change, state="failed" if found[0][0].error else "running")
        before = found[-1][1]
        while before is not None and before.error:
            before = line.before(before)
        count = self._counts.between(found[0][0].id, before.id if before is not None else "")
        return replace(change, answers=count)

    def _grouped(self, repos: Sequence[str]) -> Iterator["tuple[CommitRecord, CommitRecord | None] | _Group"]:
        """Every change before it is examined: a commit with the one before it, or a deployment."""
        streams: list[Iterator[Any]] = [_with_parents(self._history.records(repo)) for repo in SOURCES if repo in repos]
        if FETCHED in repos:
            ticks = islice(_with_parents(self._history.records(FETCHED)), _MOST_TICKS)
            streams.append(each for each in ticks if each[0].good and self._history.pairs(FETCHED, each[0].id))
        if DEPLOYMENT in repos:
            streams.append(iter(self._versions.newest_first()))
        group: _Group | None = None
        for each in heapq.merge(*streams, key=_started, reverse=True):
            if isinstance(each, PipelineVersion):
                if group is not None and group.model is None and group.takes(each):
                    group.versions.append(each)
                    continue
                if group is not None:
                    yield group
                group = _Group([each])
                continue
            if group is not None:
                if each[0].repo == MODELS and self._took_effect_with(each[0], group):
                    group.model = each[0]
                    continue
                yield group
                group = None
            yield each
        if group is not None:
            yield group

    def _took_effect_with(self, model: CommitRecord, group: _Group) -> bool:
        """Whether a backbone was staged for a deployment that changed the size of pictures with it."""
        if self._lines["features"].of(model.id, model.started) is not None:
            return False
        infos = self._connection.pfs.InspectCommitSet(
            pfs_pb2.InspectCommitSetRequest(commit_set=pfs_pb2.CommitSet(id=group.versions[0].id))
        )
        return any(of.repo.name == MODELS and of.id == model.id for info in infos for of in info.direct_provenance)

    def _commit(
        self, record: CommitRecord, parent: CommitRecord | None, concerns: Callable[[str], bool]
    ) -> LibraryChange:
        record = self._history.ended(record)
        before = origins(record.description)
        change = LibraryChange(
            record.repo,
            (record.id,),
            before[0].started if before else record.started,
            record.started,
            record.author,
            record.description.partition(_WAS)[0].rstrip() if before else record.description,
            record.open,
            record.error,
        )
        if record.open or record.error:
            return change
        if record.repo in PREPROCESS:
            pictures = self._pictures(record, concerns)
            change = replace(change, pictures=pictures)
        if change.pictures is None:
            change = replace(
                change, files=tuple(sorted(each.path for each in self._history.pairs(record.repo, record.id)))
            )
        if record.repo == MODELS:
            change = replace(change, model=(self._backbone(parent), self._backbone(record)))
        return change

    def _pictures(self, record: CommitRecord, concerns: Callable[[str], bool]) -> PictureChanges | None:
        found = self._lines[PREPROCESS[record.repo]].of(record.id, record.started)
        if found is None:
            return None
        made, before = found
        if not made.good or (before is not None and before.error):
            return None
        computed = (made.id, before.id if before is not None else "")
        return self._contents.between(record.repo, record.id, None, computed, concerns)

    def _deployment(self, group: _Group) -> LibraryChange:
        versions = group.versions
        pairs = [(self._versions.before(each), each) for each in versions]
        changed = differences(pairs)
        touched = {name for each in changed for name in each.pipelines}
        same = [new for old, new in pairs if old is not None and new.pipeline not in touched and old.salt != new.salt]
        ids = tuple(dict.fromkeys(each.id for each in versions))
        model = group.model
        return LibraryChange(
            DEPLOYMENT,
            ids,
            versions[-1].started,
            versions[-1].started,
            author=versions[0].author or self._history.author_of_version(versions[0].pipeline, versions[0].id),
            description=versions[0].description or (model.description if model is not None else ""),
            model=(self._backbone(self._parent_of(model)), self._backbone(model)) if model is not None else None,
            settings=changed,
            created=tuple(sorted(new.pipeline for old, new in pairs if old is None)),
            reprocessed=tuple(sorted(each.pipeline for each in same)),
        )

    def _parent_of(self, model: CommitRecord) -> CommitRecord | None:
        return next((old for new, old in _with_parents(self._history.records(MODELS)) if new.id == model.id), None)

    def _backbone(self, record: CommitRecord | None) -> str:
        return backbones.describe_commit(self._connection, record.id if record is not None else "")


def _identity(each: "tuple[CommitRecord, CommitRecord | None] | _Group") -> tuple[str, bool]:
    """What the commits of one commit set have in common, also after an import, and no other change."""
    if isinstance(each, _Group):
        return each.versions[0].id, True
    return first_id(each[0].id, each[0].description), False


def _started(each: Any) -> datetime:
    found: datetime = each.started if isinstance(each, PipelineVersion) else each[0].started
    return found


class _CommitLine:
    """The commits of a repo, read from the newest as far as they are asked for."""

    def __init__(self, records: Iterator[CommitRecord]) -> None:
        self._rest = _with_parents(records)
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


def _with_parents(records: Iterator[CommitRecord]) -> Iterator[tuple[CommitRecord, CommitRecord | None]]:
    """Each commit with the one before it."""
    current = next(records, None)
    while current is not None:
        before = next(records, None)
        yield current, before
        current = before
