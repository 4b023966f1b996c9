"""Groups of exact and near copies: fetched from the pipeline `duplicates`, or made here of its pairs for two folders;
with the list of the files that can go, and pages. Knows no terminal."""

import io
import json
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.analysis.measurement import optional_deployment
from pipelines.analysis.stage_runs import StageDatum, StageInput, run
from pipelines.client import backbones
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import result_sheets, snapshots
from pipelines.specifications import optional_specs, specs_directory
from stages.datum import stage_version
from stages.files.tables.image_table import read_sources
from stages.files.tables.index_table import TABLE
from stages.record import name_lists
from stages.report.copy_pages import EXACT, LIST, NEAR, CopyKind

GROUP = "duplicates"
PAIRS = "neighbours"


@dataclass(frozen=True, slots=True)
class CopyGroups:
    """The groups of a library, the largest first: the lines of groups.jsonl and of near.jsonl, see docs/formats.md.
    near: None if they were not asked for. directory: holds all files."""

    directory: Path
    groups: Sequence[Mapping[str, Any]]
    near: Sequence[Mapping[str, Any]] | None = None

    @property
    def removable(self) -> int:
        """The number of files that can go."""
        return sum(len(removed(group)) for group in self.groups)

    @property
    def frees(self) -> int:
        """Their bytes."""
        return sum(group["frees"] for group in self.groups)


def removed(group: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The sources of a group beside those to keep."""
    return [source for picture in group["pictures"] for source in picture["sources"] if not source["keep"]]


def changed(group: Mapping[str, Any]) -> int:
    """The number of near copies in a group: of pictures beside the kept one."""
    return len(group["pictures"]) - 1


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


def check(connection: Connection) -> None:
    """Raises LookalikeError if the pipelines cannot be deployed; if one runs another version, since earlier ones list
    near copies for removal; or if there is no backbone: without one nothing is compared, and a library would seem to be
    without copies."""
    optional_deployment.check(connection, GROUP)
    there = connection.retry(ProjectJobs(connection).pipelines)
    for spec in optional_specs.required_specs(specs_directory.current(), GROUP):
        own_version = int(spec.request().transform.env[stage_version.STAGE].rpartition("-")[2])
        runs = there[spec.name].details.transform.env.get(stage_version.STAGE, "") if spec.name in there else ""
        if reason := stage_version.refusal(spec.name, own_version, runs):
            raise LookalikeError(f"{spec.name}: {reason}")
    if connection.retry(lambda: backbones.current_backbone(Repository(connection, backbones.REPO))) is None:
        raise LookalikeError(
            "the library has no backbone, so no pictures are compared: run `lookalike model push efficientnet-lite0`"
        )


def export(connection: Connection, to: Path, near: bool = False, across: tuple[str, str] | None = None) -> CopyGroups:
    """Writes groups.jsonl, remove.txt and the pages into a directory, over those of an earlier run; with `near` also
    near.jsonl and its pages.

    across: two folders, see stages.quality.copy_groups. Raises LookalikeError if a folder has no pictures, or if the
    directory is that of a result sheet."""
    if (to / result_sheets.ANSWERS).exists():
        raise LookalikeError(f"{to} is the result sheet of a query: name another directory with --output")
    to.mkdir(parents=True, exist_ok=True)
    kinds = (EXACT, NEAR) if near else (EXACT,)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=to) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        at_urls = connection.retry(snapshots.at_urls, connection)  # which the pipeline does not know
        if at_urls or across is not None or not _fetch(connection, GROUP, f"/{EXACT.lines}", "/", made):
            _make(connection, Path(scratch), made, across, at_urls)
        for old in (path for kind in (EXACT, NEAR) for path in _files(to, kind)):
            old.unlink()
        for path in (path for kind in kinds for path in _files(made, kind)):
            path.replace(to / path.name)
    groups, *others = ([json.loads(line) for line in (to / kind.lines).read_text().splitlines()] for kind in kinds)
    return CopyGroups(to, groups, *others)


def _files(directory: Path, kind: CopyKind) -> list[Path]:
    """What was written of a kind of copies into a directory."""
    mine = (kind.first, f"{kind.later}-*.html", kind.lines, *((LIST,) if kind is EXACT else ()))
    return [path for pattern in mine for path in sorted(directory.glob(pattern))]


def _make(
    connection: Connection, scratch: Path, out: Path, across: tuple[str, str] | None, at_urls: Collection[str]
) -> None:
    """Runs the stage here. Without pairs it says that there are no copies."""
    inputs = {name: StageInput(scratch / name, name) for name in ("pairs", "pictures")}
    for given in inputs.values():
        given.path.mkdir()
    _fetch(connection, PAIRS, "/pairs", "/pairs/", inputs["pairs"].path)
    index = connection.retry(lambda: Repository(connection, "index").good())
    for path, content in () if index is None else connection.retry(lambda: list(index.read_all(f"/*/{TABLE}"))):
        (inputs["pictures"].path / f"{path.split('/')[1]}.parquet").write_bytes(content)
    if at_urls:
        inputs["references"] = StageInput(scratch / "references", "")
        names = "".join(f"{each}\n" for each in name_lists.lines(sorted(at_urls)))
        inputs["references"].path.write_text(names, encoding="utf-8", newline="\n")
    try:
        run(GROUP, [StageDatum(inputs, out)], {"ACROSS": json.dumps(across)} if across else {})
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

    return connection.retry(fetched)


def read_contents(connection: Connection) -> Mapping[str, str]:
    """What is equal for exact copies (stages.record.sources.Source.content), by the SHA-256 of the file, of those whose
    copies need not have equal bytes. Empty without an index."""
    index = Repository(connection, "index").good()
    tables = () if index is None else index.read_all(f"/*/{TABLE}")
    every = (each for _, table in tables for sources in read_sources(io.BytesIO(table)) for each in sources)
    return {each.sha256: each.pixels for each in every if each.pixels}
