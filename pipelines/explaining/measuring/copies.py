"""Groups of equal and near pictures: fetched from the pipeline `duplicates`, or made here of its pairs for a smaller
distance or for two folders; with the list of pictures to remove, and pages. Knows no terminal."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.client.connection import Connection
from pipelines.client.jobs import Jobs
from pipelines.client.outages import outlasting
from pipelines.client.repository import Repository
from pipelines.errors import LookalikeError
from pipelines.explaining.stageruns import Given, Work, run
from pipelines.library import results
from pipelines.specifications import optional, own

GROUP = "duplicates"
PAIRS = "neighbours"
PAGE, LIST, GROUPS = "index.html", "remove.txt", "groups.jsonl"

_THRESHOLD = "THRESHOLD"
_MINE = (PAGE, "page-*.html", LIST, GROUPS)


@dataclass(frozen=True, slots=True)
class Copies:
    """The groups of a library, the largest first: the lines of groups.jsonl, see docs/formats.md. directory: holds all
    files."""

    directory: Path
    groups: Sequence[Mapping[str, Any]]

    @property
    def removable(self) -> int:
        """The number of files that are not needed."""
        return sum(len(removed(group)) for group in self.groups)

    @property
    def frees(self) -> int:
        """Their bytes."""
        return sum(group["frees"] for group in self.groups)


def removed(group: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The sources of a group that are not needed."""
    return [source for picture in group["pictures"] for source in picture["sources"] if not source["keep"]]


def size(group: Mapping[str, Any]) -> int:
    """The number of sources of a group."""
    return sum(len(picture["sources"]) for picture in group["pictures"])


def folders(across: tuple[str, str] | None) -> tuple[str, str] | None:
    """Two folders or names as the library has them. Raises LookalikeError if a picture could be in both."""
    if across is None:
        return None
    one, other = (folder.removeprefix("./").rstrip("/") for folder in across)
    if not one or not other:
        raise LookalikeError("--across takes two folders of the library; a name is empty")
    if f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/"):
        raise LookalikeError(f"--across takes two separate folders: {one} and {other} have pictures in common")
    return one, other


def check(connection: Connection, distance: float | None) -> None:
    """Raises LookalikeError if pairs of that distance are not kept, or will not be."""
    there = PAIRS in outlasting(connection, Jobs(connection).pipelines)
    kept = _threshold(connection)
    if distance is not None and kept is not None and distance > kept:
        first = "" if there else "`lookalike duplicates` without it, and then "
        raise LookalikeError(
            f"--distance {distance:g} is above {_THRESHOLD}={kept:g}, up to which {PAIRS} keeps pairs: run {first}"
            f"`lookalike deploy --set {_THRESHOLD}={distance:g}`, which finds all pairs again"
        )


def export(
    connection: Connection, to: Path, distance: float | None = None, across: tuple[str, str] | None = None
) -> Copies:
    """Writes groups.jsonl, remove.txt and the pages into a directory, over those of an earlier run.

    distance: the largest of a near pair, None for all that are kept. across: two folders, see stages.copies. Raises
    LookalikeError if a folder has no pictures, or if the directory is that of a result sheet.
    """
    if (to / results.ANSWERS).exists():
        raise LookalikeError(f"{to} is the result sheet of a query: name another directory with --output")
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=to) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        whole = distance is None and across is None
        if not whole or not _fetch(connection, GROUP, f"/{GROUPS}", "/", made):
            _make(connection, Path(scratch), made, distance, across)
        for old in (path for pattern in _MINE for path in to.glob(pattern)):
            old.unlink()
        for path in sorted(made.iterdir()):
            path.replace(to / path.name)
    with (to / GROUPS).open(encoding="ascii") as lines:
        return Copies(to, [json.loads(line) for line in lines])


def _make(
    connection: Connection, scratch: Path, out: Path, distance: float | None, across: tuple[str, str] | None
) -> None:
    """Runs the stage here. Without pairs it says that there are no copies."""
    inputs = {name: Given(scratch / name, name) for name in ("pairs", "pictures")}
    for given in inputs.values():
        given.path.mkdir()
        _fetch(connection, PAIRS, f"/{given.repo_path}", f"/{given.repo_path}/", given.path)
    environment = {} if distance is None else {"DISTANCE": repr(distance)}
    try:
        run(GROUP, [Work(inputs, out)], environment | ({"ACROSS": json.dumps(across)} if across else {}))
    except LookalikeError as error:
        raise LookalikeError(str(error).removeprefix(f"{GROUP}: ")) from error


def _fetch(connection: Connection, repo: str, needed: str, directory: str, to: Path) -> bool:
    """Writes the files below a directory of a pipeline's newest good output, unless it lacks a path that is needed;
    returns whether it has that."""

    def fetched() -> bool:
        found = Repository(connection, repo).good()
        if found is None or not found.exists(needed):
            return False
        found.extract(directory, to)
        return True

    return outlasting(connection, fetched)


def _threshold(connection: Connection) -> float | None:
    """The largest distance of the pairs that are kept, or will be; None if that is not a number."""
    info = outlasting(connection, Jobs(connection).pipelines).get(PAIRS)
    if info is not None:
        text = info.details.transform.env.get(_THRESHOLD, "")
    else:
        needed = (spec for spec in optional.needed(own.current(), GROUP) if spec.name == PAIRS)
        text = next((spec.request().transform.env.get(_THRESHOLD, "") for spec in needed), "")
    try:
        return float(text)
    except ValueError:
        return None
