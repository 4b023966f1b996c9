"""Evaluation: labels put into the repo, labels from folders, and the report of `evaluate` copied to a directory.

Knows no terminal. Numbers and plots are made by the stages.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.client.deploying.deployment import make_repo
from pipelines.client.jobs.jobs import Jobs
from pipelines.client.repository import Put, Remove, Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.outages import outlasting
from pipelines.errors import LookalikeError
from pipelines.explaining import stageruns
from pipelines.explaining.measuring.deploying import LABELS, LABELS_FILE, LABELS_HEADER
from pipelines.explaining.stageruns import Given, Work
from stages.datum.stageversion import STAGE
from stages.record import labels

GROUP = "evaluate"
"""The group of opt-in pipelines."""

REPO = "evaluate"
FOLDERS = "folders.csv"
PAGE = "index.html"
METRICS = "metrics.json"
CALIBRATION = "calibration.json"

_DIVIDED = "evaluate-1"
"""The stage whose output is no report, since another pipeline made that."""

NOTHING = (
    "there is nothing to evaluate, since no picture of the library is in the index: add pictures with `lookalike add` "
    "or, if there are some, see `lookalike status`"
)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A report: its directory, and the values of the files metrics.json and calibration.json in it."""

    directory: Path
    metrics: Mapping[str, Any]
    calibration: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Checked:
    """A file of labels to put: its name in the repo, its content, and the lines that give no label, in words."""

    name: str
    content: bytes
    problems: Sequence[str]


def check(files: Sequence[Path]) -> list[Checked]:
    """The files, read. Raises LookalikeError if one cannot be read or gives no label, or if two have one name."""
    found: dict[str, Checked] = {}
    for path in files:
        if path.name in found:
            raise LookalikeError(
                f"two files are called {path.name}, and one would replace the other: rename one of them"
            )
        try:
            content = path.read_bytes()
        except OSError as error:
            raise LookalikeError(f"{path} cannot be read: {error.strerror or error}") from error
        rows = list(labels.read(path.name, content))
        problems = [each.said for each in rows if isinstance(each, labels.Problem)]
        if len(problems) == len(rows):
            raise LookalikeError(
                problems[0]
                if problems
                else f"{path.name} has no labels, only a header: add a line for each labelled picture"
            )
        found[path.name] = Checked(path.name, content, problems)
    return list(found.values())


def check_deployed(connection: Connection) -> None:
    """Raises LookalikeError if the deployed pipeline is one that writes no report."""
    info = outlasting(connection, Jobs(connection).pipelines).get(REPO)
    if info is not None and info.details.transform.env.get(STAGE) == _DIVIDED:
        raise LookalikeError(
            f"{REPO} was deployed by an earlier lookalike: bring the pipelines to this version with `lookalike upgrade`"
        )


def put(connection: Connection, files: Mapping[str, bytes]) -> str:
    """Puts files of labels, by name, over those of the same names; a file without labels if the repo would stay empty,
    for the cross of evaluate with it would have no datum. Returns the commit, "" if all are there already."""
    make_repo(connection, LABELS)
    there = held(connection)
    if not files and not there:
        return Repository(connection, LABELS).write([Put(LABELS_FILE, LABELS_HEADER)])
    changed = [Put(f"/{name}", content) for name, content in files.items() if there.get(name) != content]
    return Repository(connection, LABELS).write(changed) if changed else ""


def forget(connection: Connection, name: str) -> str:
    """Removes a file of labels; returns the commit, "" if there is none of that name."""
    return Repository(connection, LABELS).write([Remove(f"/{name}")]) if name in held(connection) else ""


def held(connection: Connection) -> dict[str, bytes]:
    """The files of labels by name; none without the repo."""
    repo = Repository(connection, LABELS)
    return {
        path.removeprefix("/"): content for path, content in outlasting(connection, lambda: list(repo.read_all("/*")))
    }


def from_folders(connection: Connection) -> bytes:
    """A file with the parent folder of each picture as its label, except for those that another file labels. Raises
    LookalikeError if no picture is in a folder, or none is known."""
    neighbours = outlasting(connection, Repository(connection, "neighbours").good)
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        given, pictures = Path(scratch, "labels"), Path(scratch, "pictures")
        given.mkdir()
        pictures.mkdir()
        for name, content in held(connection).items():
            (given / name).write_bytes(content)
        if neighbours is not None and outlasting(connection, partial(neighbours.exists, "/pictures/")):
            outlasting(connection, partial(neighbours.extract, "/pictures/", pictures))
        if not any(pictures.iterdir()):
            raise LookalikeError(NOTHING)
        work = Work({"labels": Given(given, ""), "pictures": Given(pictures, "pictures")}, Path(scratch))
        stageruns.run("folderlabels", [work], {})
        return Path(scratch, FOLDERS).read_bytes()


def export(connection: Connection, to: Path) -> Evaluation:
    """Copies the newest report into a directory. Raises LookalikeError if there is none."""
    report = outlasting(connection, Repository(connection, REPO).good)
    if report is None or not outlasting(connection, partial(report.exists, f"/{METRICS}")):
        raise LookalikeError(NOTHING)
    to.mkdir(parents=True, exist_ok=True)
    outlasting(connection, partial(report.extract, "/", to))
    values = [json.loads((to / name).read_bytes()) for name in (METRICS, CALIBRATION)]
    return Evaluation(to, *values)
