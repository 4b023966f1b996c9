"""A chosen classifier compared with the one in production, on the held-out pictures of the newest labels, and made the
one in production: the branch `production` of `select`, which the service follows.

No pipeline can do that, since none reads its own older output. Both are evaluated on this machine.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.analysis import stage_runs
from pipelines.analysis.classifiers import experiments
from pipelines.analysis.classifiers.experiments import LABELLED, PRODUCTION, SELECT, SHORT, ClassifierChoice
from pipelines.analysis.stage_runs import StageDatum, StageInput, kept_files
from pipelines.client import branches
from pipelines.client.commit_history import CommitHistory
from pipelines.client.commit_tree import CommitTree
from pipelines.client.lineage import Lineage
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE
from stages.classify import classifier_description
from stages.classify.training import run_records
from stages.datum.file_cache import FileCache
from stages.record import entry_paths

_MEASURED = "promotion.json"

_CLASSIFIER = (run_records.MODEL, classifier_description.FILE)
_BACKBONE = (MODEL_FILE, SPEC_FILE)


@dataclass(frozen=True, slots=True)
class PromotionTrial:
    """Two classifiers and the comparison of them, the value of promotion.json. current: None before the first
    promotion. back: whether the candidate is older than the one in production."""

    candidate: ClassifierChoice
    current: ClassifierChoice | None
    measured: Mapping[str, Any]
    back: bool

    @property
    def same(self) -> bool:
        """Whether the candidate is in production already."""
        return self.current is not None and self.current.commit == self.candidate.commit

    @property
    def worse(self) -> bool:
        """Whether the candidate has fewer pictures right."""
        ours, theirs = self.measured["candidate"], self.measured["current"]
        return ours is not None and theirs is not None and bool(ours["right"] < theirs["right"])


def candidate(connection: Connection, text: str = "") -> ClassifierChoice:
    """The classifier that a text means: "" for the newest choice of `select`; a commit of `select` or its first digits;
    or RUN@COMMIT as in the list of runs, for a run that was chosen. Raises LookalikeError if there is none."""
    lineage = Lineage(connection)
    if not text:
        found = experiments.choice(connection, lineage)
        if found is None:
            raise LookalikeError(
                "there is no classifier to promote, since no training has succeeded yet: see `lookalike classify runs`"
            )
        return found
    run, at, commit = text.rpartition("@")
    for each in connection.retry(lambda: list(CommitHistory(connection).records(SELECT))):
        if not each.good or (not at and not each.id.startswith(commit)):
            continue
        found = experiments.choice(connection, lineage, each.id)
        if found is None and not at:
            raise LookalikeError(f"commit {each.id} of {SELECT} holds no classifier: no training had succeeded then")
        if found is not None and (not at or (found.chosen.run == run and found.trained.startswith(commit))):
            return found
    raise LookalikeError(
        f"{SELECT} has never chosen {text}: name a commit that `lookalike commits {SELECT}` lists, or a run that "
        "`lookalike classify runs --all` marks as chosen"
    )


def measure(connection: Connection, wanted: ClassifierChoice) -> PromotionTrial:
    """Evaluates a classifier, and the one in production, on the held-out pictures of the newest labels. Raises
    LookalikeError with the reason if that cannot be done."""
    current = experiments.production(connection, Lineage(connection))
    labelled = connection.retry(Repository(connection, LABELLED).good)
    if labelled is None:
        raise LookalikeError(
            f"{LABELLED} has no output yet, so there is nothing to measure with: see `lookalike status`"
        )
    with kept_files() as (store, scratch):
        fetch = partial(_fetch, connection, store, scratch)
        inputs = {
            "labelled": fetch("labelled", LABELLED, labelled.at, ()),
            "candidate": fetch("candidate", SELECT, wanted.commit, _CLASSIFIER),
            "candidate_models": fetch("candidate_models", "models", wanted.commit, _BACKBONE),
        }
        if current is not None:
            inputs["current"] = fetch("current", SELECT, current.commit, _CLASSIFIER)
            inputs["current_models"] = fetch("current_models", "models", current.commit, _BACKBONE)
        out = scratch / "out"
        stage_runs.run("promotion", [StageDatum(inputs, out)], {})
        measured = json.loads((out / _MEASURED).read_bytes())
    return PromotionTrial(wanted, current, measured, current is not None and _is_older(connection, wanted, current))


def promote(connection: Connection, wanted: ClassifierChoice) -> None:
    """Moves the branch to the commit of a classifier."""
    branches.move(connection, SELECT, PRODUCTION, wanted.commit)


def named(choice: ClassifierChoice) -> str:
    """A classifier in words: its run, and the commit of `select`."""
    return f"{choice.chosen.run}@{choice.trained[:SHORT]} (commit {choice.commit[:12]} of {SELECT})"


def _fetch(
    connection: Connection, store: FileCache, scratch: Path, name: str, repo: str, commit: str, files: tuple[str, ...]
) -> StageInput:
    """A directory with files of a repo as they were at a commit set: those named, or all of them."""
    tree = CommitTree.at(connection, repo, commit)
    directory = scratch / name
    directory.mkdir()
    if tree is not None:
        for each in tree.files():
            if not files or each.name in files:
                tree.place(store, each, directory / each.name)
    return StageInput(directory, "")


def _is_older(connection: Connection, one: ClassifierChoice, other: ClassifierChoice) -> bool:
    """Whether a commit of `select` is older than another."""
    for each in connection.retry(lambda: list(CommitHistory(connection).records(SELECT))):
        if each.id in (one.commit, other.commit):
            return bool(each.id == other.commit != one.commit)
    return False


VECTORS = "features-queries"
_CLASSES = "classes.json"


@dataclass(frozen=True, slots=True)
class PictureLabels:
    """A picture of an entry: its name there, and its labels with their probabilities, the most probable first."""

    source: str
    labels: Sequence[tuple[str, float]]


def labels(connection: Connection, entry: str) -> list[PictureLabels]:
    """The labels of the pictures in a query entry, by name. Raises LookalikeError if nothing is in production, or the
    entry has no vectors."""
    promoted = experiments.production(connection, Lineage(connection))
    if promoted is None:
        raise LookalikeError("no classifier is in production: lookalike classify promote")
    computed = connection.retry(Repository(connection, VECTORS).good)
    home = entry_paths.directory(entry)
    tree = None if computed is None else CommitTree(connection, VECTORS, computed.at)
    files = [] if tree is None else tree.entries(f"/{home}/*")
    if tree is None or not files:
        raise LookalikeError(f"{VECTORS} has computed nothing for the query {entry}: see `lookalike status`")
    with kept_files() as (store, scratch):
        vectors, out = scratch / "vectors", scratch / "out"
        classifier = _fetch(connection, store, scratch, "classifier", SELECT, promoted.commit, _CLASSIFIER)
        for each in files:
            tree.place(store, each, vectors / Path(each.path).name)
        work = StageDatum({"classifier": classifier, "vectors": StageInput(vectors, home)}, out)
        stage_runs.run("label_vectors", [work], {})
        found = json.loads((out / _CLASSES).read_bytes())
    return [
        PictureLabels(each["source"], [(label["label"], label["probability"]) for label in each["labels"]])
        for each in found
    ]
