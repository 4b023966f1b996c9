"""The labels of a query entry's pictures by the classifier in production, from the vectors that features-queries has
computed. Nothing is written to the server."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.analysis import stage_runs
from pipelines.analysis.classifiers import experiments
from pipelines.analysis.classifiers.experiments import SELECT
from pipelines.analysis.stage_runs import StageDatum, StageInput
from pipelines.client.commit_tree import CommitTree
from pipelines.client.lineage import Lineage
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.retries import with_retries
from pipelines.errors import LookalikeError
from stages.classify import classifier_description
from stages.classify.training import run_records
from stages.datum.file_cache import FileCache, default_place
from stages.record import entry_paths

VECTORS = "features-queries"
RESULT = "classes.json"


@dataclass(frozen=True, slots=True)
class PictureLabels:
    """A picture of an entry: its name there, and its labels with their probabilities, the most probable first."""

    source: str
    labels: Sequence[tuple[str, float]]


def labels(connection: Connection, entry: str, store: FileCache | None = None) -> list[PictureLabels]:
    """The labels of the pictures in a query entry, by name. Raises LookalikeError if nothing is in production, or the
    entry has no vectors."""
    promoted = experiments.production(connection, Lineage(connection))
    if promoted is None:
        raise LookalikeError("no classifier is in production: lookalike classify promote")
    computed = with_retries(connection, Repository(connection, VECTORS).good)
    home = entry_paths.directory(entry)
    files = [] if computed is None else CommitTree(connection, VECTORS, computed.at).entries(f"/{home}/*")
    if computed is None or not files:
        raise LookalikeError(f"{VECTORS} has computed nothing for the query {entry}: see `lookalike status`")
    store = store or FileCache(default_place())
    with store.scratch() as scratch:
        classifier, vectors, out = (scratch / name for name in ("classifier", "vectors", "out"))
        out.mkdir()
        for each in CommitTree(connection, SELECT, promoted.commit).entries("/*"):
            if each.path in (run_records.MODEL, classifier_description.FILE):
                CommitTree(connection, SELECT, promoted.commit).place(store, each, classifier / each.path)
        for each in files:
            CommitTree(connection, VECTORS, computed.at).place(store, each, vectors / Path(each.path).name)
        work = StageDatum({"classifier": StageInput(classifier, ""), "vectors": StageInput(vectors, home)}, out)
        stage_runs.run("label_vectors", [work], {})
        found = json.loads((out / RESULT).read_bytes())
    store.trim()
    return [
        PictureLabels(each["source"], [(label["label"], label["probability"]) for label in each["labels"]])
        for each in found
    ]
