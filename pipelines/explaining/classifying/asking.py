"""The labels of a query entry's pictures by the classifier in production, from the vectors that features-queries has
computed. Nothing is written to the server."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.client.lineage import Lineage
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.outages import outlasting
from pipelines.client.trees import Tree
from pipelines.errors import LookalikeError
from pipelines.explaining import stageruns
from pipelines.explaining.classifying import experiments
from pipelines.explaining.classifying.experiments import SELECT
from pipelines.explaining.stageruns import Given, Work
from stages.classify import chosen
from stages.classify.training import runs
from stages.datum.filecache import FileCache, default_place
from stages.record import entrypaths

VECTORS = "features-queries"
RESULT = "classes.json"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A picture of an entry: its name there, and its labels with their probabilities, the most probable first."""

    source: str
    labels: Sequence[tuple[str, float]]


def labels(connection: Connection, entry: str, store: FileCache | None = None) -> list[Labelled]:
    """The labels of the pictures in a query entry, by name. Raises LookalikeError if nothing is in production, or the
    entry has no vectors."""
    promoted = experiments.production(connection, Lineage(connection))
    if promoted is None:
        raise LookalikeError("no classifier is in production: lookalike classify promote")
    computed = outlasting(connection, Repository(connection, VECTORS).good)
    home = entrypaths.directory(entry)
    files = [] if computed is None else Tree(connection, VECTORS, computed.at).entries(f"/{home}/*")
    if computed is None or not files:
        raise LookalikeError(f"{VECTORS} has computed nothing for the query {entry}: see `lookalike status`")
    store = store or FileCache(default_place())
    with store.scratch() as scratch:
        classifier, vectors, out = (scratch / name for name in ("classifier", "vectors", "out"))
        out.mkdir()
        for each in Tree(connection, SELECT, promoted.commit).entries("/*"):
            if each.path in (runs.MODEL, chosen.FILE):
                Tree(connection, SELECT, promoted.commit).place(store, each, classifier / each.path)
        for each in files:
            Tree(connection, VECTORS, computed.at).place(store, each, vectors / Path(each.path).name)
        work = Work({"classifier": Given(classifier, ""), "vectors": Given(vectors, home)}, out)
        stageruns.run("labelvectors", [work], {})
        found = json.loads((out / RESULT).read_bytes())
    store.trim()
    return [
        Labelled(each["source"], [(label["label"], label["probability"]) for label in each["labels"]]) for each in found
    ]
