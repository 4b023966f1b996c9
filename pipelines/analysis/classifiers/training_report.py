"""The report of `select`, copied to a directory of this machine. Knows no terminal."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.analysis.classifiers.experiments import SELECT
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError

PAGE, CARD, METRICS = "index.html", "model-card.md", "metrics.json"
_CLASSIFIER = ("model.keras", "labels.json")

NOTHING = (
    "there is nothing to train on, since no picture of the library is labelled: add some with `lookalike classify add` "
    "or, if there are some, see `lookalike status`"
)


def export(connection: Connection, to: Path, with_classifier: bool = False) -> Mapping[str, Any]:
    """Copies the newest report, and the chosen classifier on request, into a directory, over those of an earlier
    training; returns its measures. Raises LookalikeError if there is none."""
    report = connection.retry(Repository(connection, SELECT).good)
    if report is None or not connection.retry(report.exists, f"/{METRICS}"):
        raise LookalikeError(NOTHING)
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=to) as scratch:
        for name in (PAGE, CARD, METRICS, *(_CLASSIFIER if with_classifier else ())):
            (to / name).unlink(missing_ok=True)
            if connection.retry(report.exists, f"/{name}"):
                Path(scratch, name).write_bytes(connection.retry(report.read, f"/{name}"))
                Path(scratch, name).replace(to / name)
    found: Mapping[str, Any] = json.loads((to / METRICS).read_bytes())
    return found
