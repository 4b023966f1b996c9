"""The runs of all trainings as a table of experiments: parameters, data, results, and the job that computed each.

A run that later jobs have skipped belongs to the job that computed it. Knows no terminal; contacts only Pachyderm.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pipelines.analysis.stage_runs import kept_files
from pipelines.client import branches
from pipelines.client.commit_history import CommitHistory
from pipelines.client.commit_sets import inspect_commit
from pipelines.client.commit_tree import CommitTree
from pipelines.client.jobs.datum_records import DatumRecord
from pipelines.client.lineage import Lineage
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.stored_file import StoredFile
from pipelines.errors import LookalikeError
from stages.classify import classifier_description
from stages.classify.classifier_description import ClassifierDescription
from stages.classify.training import run_records
from stages.classify.training.run_records import TrainingRun
from stages.datum.contract import StageError
from stages.files.tables.label_table import LabelTable

GROUP = "classify"
"""The group of opt-in pipelines."""

LABELLED, TRAIN, SELECT = "labelled", "train", "select"
PRODUCTION = "production"
"""The branch of SELECT that the service follows."""

SHORT = 6
"""Digits of a commit's id in the name of a run."""

_SOURCES = ("labels", "images", "models")


@dataclass(frozen=True, slots=True)
class Experiment:
    """A run, and the commit of `train` whose job computed it.

    began: that job's start (UTC). seconds: of the training, None if they were not recorded. labels, images, models: the
    commits that it was trained on, "" if they are gone. current: whether the newest commit holds it. chosen, promoted:
    whether it is the newest choice of `select`, and whether it is in production.
    """

    run: TrainingRun
    commit: str
    began: datetime | None
    seconds: float | None
    labels: str
    images: str
    models: str
    current: bool = True
    chosen: bool = False
    promoted: bool = False

    @property
    def name(self) -> str:
        """The name by which people call it."""
        return f"{self.run.name}@{self.commit[:SHORT]}"


@dataclass(frozen=True, slots=True)
class ClassifierChoice:
    """A classifier that `select` has chosen, its commit, and the commit of `train` that computed the run."""

    chosen: ClassifierDescription
    commit: str
    trained: str


def read(connection: Connection, everything: bool = False) -> list[Experiment]:
    """The runs of the newest good commit of `train`, or those of all commits; the newest first, and of one job by
    name."""
    lineage = Lineage(connection)
    newest, promoted = choice(connection, lineage), production(connection, lineage)
    marks = [(each.chosen.run, each.trained) if each is not None else None for each in (newest, promoted)]
    found = []
    for current, commit, file, record in _computed(connection, lineage, everything):
        content = connection.retry(lineage.read, file)
        run = _parsed(content, file.path)
        job = connection.retry(lineage.job, TRAIN, commit)
        is_chosen, is_promoted = ((run.name, commit) == mark for mark in marks)
        found.append(
            Experiment(
                run,
                commit,
                None if job is None else job.started,
                None if record is None else record.process,
                **_data(connection, record, commit),
                current=current,
                chosen=is_chosen,
                promoted=is_promoted,
            )
        )
    found.sort(key=lambda each: (-each.began.timestamp() if each.began else 0.0, each.run.name))
    return found


def choice(connection: Connection, lineage: Lineage, commit: str = "") -> ClassifierChoice | None:
    """What `select` has chosen, in its newest good commit or in the one of this id; None if it has chosen nothing."""
    good = connection.retry(Repository(connection, SELECT, commit).good)
    if good is None or not connection.retry(good.exists, f"/{classifier_description.FILE}"):
        return None
    try:
        found = classifier_description.parse(connection.retry(good.read, f"/{classifier_description.FILE}"))
    except StageError as error:
        raise LookalikeError(f"commit {good.at} of {SELECT}: {error}") from error
    file = connection.retry(lineage.file, TRAIN, f"/{found.run}/{run_records.FILE}", good.at)
    record = None if file is None else connection.retry(lineage.record, file)
    return ClassifierChoice(found, good.at, "" if file is None else _job_of(file, record))


def production(connection: Connection, lineage: Lineage) -> ClassifierChoice | None:
    """The classifier in production; None before the first promotion."""
    head = connection.retry(branches.head, connection, SELECT, PRODUCTION)
    return choice(connection, lineage, head) if head else None


def named(text: str, among: Sequence[Experiment]) -> Experiment:
    """The run that a text means: NAME@COMMIT with the first digits of a commit, or NAME alone for the newest of that
    name. Raises LookalikeError if it means none or several."""
    name, at, commit = text.partition("@")
    found = [each for each in among if each.run.name == name and each.commit.startswith(commit)]
    if len(found) > 1 and at:
        raise LookalikeError(f"{text} means {', '.join(each.name for each in found)}: give more digits of the commit")
    if not found:
        names = ", ".join(dict.fromkeys(each.name for each in among)) or "none"
        raise LookalikeError(f"there is no run {text}: `lookalike classify runs --all` lists them; there are {names}")
    return found[0]


def _computed(
    connection: Connection, lineage: Lineage, everything: bool
) -> Iterator[tuple[bool, str, StoredFile, DatumRecord | None]]:
    """Each run once: whether the newest commit holds it, the commit whose job computed it, its file in a commit that
    has it, and the datum's record."""
    seen: dict[str, str] = {}
    current = True
    for commit in connection.retry(lambda: list(CommitHistory(connection).records(TRAIN))):
        if not commit.good:
            continue
        for file in connection.retry(lineage.files, TRAIN, f"/*/{run_records.FILE}", commit.id):
            if seen.get(file.path):
                continue  # a later commit has the same run
            record = connection.retry(lineage.record, file)
            seen[file.path] = _job_of(file, record)
            yield current, seen[file.path], file, record
        seen = {path: job for path, job in seen.items() if job != commit.id}
        current = False
        if not everything:
            return


def _job_of(file: StoredFile, record: DatumRecord | None) -> str:
    return file.commit if record is None else record.job


def _data(connection: Connection, record: DatumRecord | None, commit: str) -> dict[str, str]:
    """The commits of labels, images and models that a training has read, "" for those that are gone."""
    inputs = {} if record is None else {each.repo: each.commit for each in record.inputs}
    at = inputs.get(LABELLED, commit)
    found = {repo: connection.retry(inspect_commit, connection, repo, at) for repo in _SOURCES}
    return {repo: "" if info is None else str(info.commit.id) for repo, info in found.items()}


def _parsed(content: bytes, path: str) -> TrainingRun:
    """The run in a file; a failed one with the reason where the file is another version's."""
    try:
        return run_records.parse(content)
    except StageError as error:
        return TrainingRun(path.strip("/").partition("/")[0], None, f"its record cannot be read: {error}")


_TABLES = "/*.parquet"

_LabelledPictures = set[tuple[str, str]]
"""The ids of pictures, each with its label."""


def untrained(connection: Connection, trained: str, newest: str) -> int:
    """The number of pictures in one commit of `labelled` that are not in another, or have another label there. trained:
    "" for none at all. Only segments that differ are read: tables of labelled pictures hold thumbnails."""
    old = [] if not trained else CommitTree(connection, LABELLED, trained).entries(_TABLES)
    new = CommitTree(connection, LABELLED, newest)
    known = {(each.path, each.hash) for each in old}
    different = [each for each in new.entries(_TABLES) if (each.path, each.hash) not in known]
    before = {each.path: each for each in old}
    with kept_files() as (store, scratch):

        def read(commit: str, entry: StoredFile) -> _LabelledPictures:
            path = scratch / entry.hash
            CommitTree(connection, LABELLED, commit).place(store, entry, path)
            try:
                table = LabelTable.read(path)
            except StageError as error:
                raise LookalikeError(f"{entry.name} of {LABELLED}: {error}") from error
            return set(zip(table.ids, table.labels, strict=True))

        return sum(
            len(read(newest, each) - (read(trained, before[each.path]) if each.path in before else set()))
            for each in different
        )
