"""Evaluation: labels put into the repo, labels from folders, and the report of `evaluate` copied to a directory.

Knows no terminal. Numbers and plots are made by the stages.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.client.deployment.deployment import ensure_filled, make_repo
from pipelines.client.deployment.first_files import LABELS
from pipelines.client.repository import DeleteFile, FileEdit, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.attributes.attribute_repo import picture_paths
from stages.record import label_files
from stages.record.label_files import FOLDERS

GROUP = "evaluate"
"""The group of opt-in pipelines."""

REPO = "evaluate"
PAGE = "index.html"
METRICS = "metrics.json"
CALIBRATION = "calibration.json"

NOTHING = (
    "there is nothing to evaluate, since no picture of the library is in the index: add pictures with `lookalike add` "
    "or, if there are some, see `lookalike status`"
)


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """A report: its directory, and the values of the files metrics.json and calibration.json in it."""

    directory: Path
    metrics: Mapping[str, Any]
    calibration: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LabelsFile:
    """A file of labels to put: its name in the repo, its content, and the lines that give no label, in words."""

    name: str
    content: bytes
    problems: Sequence[str]


def read_named(files: Sequence[Path]) -> dict[str, bytes]:
    """The content of files on this machine by name. Raises LookalikeError if one cannot be read, or if two have one
    name."""
    found: dict[str, bytes] = {}
    for path in files:
        if path.name in found:
            raise LookalikeError(
                f"two files are called {path.name}, and one would replace the other: rename one of them"
            )
        try:
            found[path.name] = path.read_bytes()
        except OSError as error:
            raise LookalikeError(f"{path} cannot be read: {error.strerror or error}") from error
    return found


def check(files: Sequence[Path]) -> list[LabelsFile]:
    """The files, read. Raises LookalikeError if one cannot be read or gives no label, or if two have one name."""
    found = []
    for name, content in read_named(files).items():
        rows = list(label_files.read(name, content))
        problems = [each.said for each in rows if isinstance(each, label_files.LineProblem)]
        if len(problems) == len(rows):
            raise LookalikeError(
                problems[0]
                if problems
                else f"{name} has no labels, only a header: add a line for each labelled picture"
            )
        found.append(LabelsFile(name, content, problems))
    return found


def put(connection: Connection, files: Mapping[str, bytes], to_train: bool = False) -> str:
    """Puts files of labels, by name, see `edits`; a file without labels if the repo would stay empty, for the cross of
    evaluate with it would have no datum. Returns the commit, "" if all are there already."""
    wanted = edits(connection, files, to_train)
    if not files and not labels_files(connection):
        return ensure_filled(connection, LABELS)
    return Repository(connection, LABELS).write(wanted) if wanted else ""


def edits(connection: Connection, files: Mapping[str, bytes], to_train: bool = False) -> list[FileEdit]:
    """The edits of the repo of labels, which is made if it is missing, that put files, by name, over those of the same
    names: for evaluation alone, unless they are also to train on. None if all are there already.

    A file for evaluation replaces one of its name that classifiers are trained on, see `trained_on`."""
    make_repo(connection, LABELS)
    there = labels_files(connection)
    found: list[FileEdit] = []
    for name, content in files.items():
        path = name if to_train else f"{label_files.EVALUATION}/{name}"
        if content not in (there.get(path), there.get(name) if name != FOLDERS else None):
            found += [PutFile(f"/{path}", content), *([DeleteFile(f"/{name}")] if path != name in there else [])]
    return found


def trained_on(connection: Connection, files: Mapping[str, bytes]) -> list[str]:
    """Of files of labels by name those that `put` takes away from classifiers, since another content of that name is
    trained on."""
    there = labels_files(connection)
    return [name for name, content in files.items() if name != FOLDERS and there.get(name, content) != content]


def removals(connection: Connection, name: str) -> list[FileEdit]:
    """The edits of the repo of labels that remove the files of that name; none if there are none."""
    there = labels_files(connection)
    return [DeleteFile(f"/{each}") for each in (name, f"{label_files.EVALUATION}/{name}") if each in there]


def labels_files(connection: Connection, at: str = "") -> dict[str, bytes]:
    """The files of labels by path, without the first slash, of a commit or of the newest; none without the repo."""
    files = connection.retry(lambda: dict(Repository(connection, LABELS, at).read_all("/**")))
    return {path.removeprefix("/"): content for path, content in files.items()}


def from_folders(connection: Connection) -> bytes:
    """A file with the parent folder of each picture as its label, except for those that another file labels. Raises
    LookalikeError if no picture is known."""
    paths = picture_paths(connection)
    if not paths:
        raise LookalikeError(NOTHING)
    others = label_files.unite(each for each in labels_files(connection).items() if not each[0].endswith(FOLDERS))
    return label_files.format_csv(label_files.from_folders(paths - others.of.keys() - others.conflicts.keys()))


def export(connection: Connection, to: Path) -> EvaluationReport:
    """Copies the newest report into a directory. Raises LookalikeError if there is none."""
    report = connection.retry(Repository(connection, REPO).good)
    if report is None or not connection.retry(report.exists, f"/{METRICS}"):
        raise LookalikeError(NOTHING)
    to.mkdir(parents=True, exist_ok=True)
    connection.retry(report.extract, "/", to)
    metrics = read_metrics((to / METRICS).read_bytes())
    return EvaluationReport(to, metrics, json.loads((to / CALIBRATION).read_bytes()))


def read_metrics(content: bytes) -> dict[str, Any]:
    """The values of a file of measures. Before version 4 of evaluate the name of the reciprocal rank did not say that
    it looks at the first k neighbours alone."""
    found: dict[str, Any] = json.loads(content)
    for mean in ("micro", "macro"):
        if "MRR" in found.get(mean, ()):
            found[mean][f"MRR@{found['ks'][-1]}"] = found[mean].pop("MRR")
    return found
