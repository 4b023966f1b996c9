"""A library that has outgrown its segments and parts, on small stages: what is said of it, and `upgrade --sizes`."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from pipelines.client import partsizes
from pipelines.client.connection import Connection
from pipelines.client.jobs import Jobs
from pipelines.client.repository import Repository
from pipelines.commands import progress
from pipelines.library import ingest
from pipelines.library.pictures import Source
from speclang.merge_patches import merge
from stages import blocknames
from tests.command import Command
from tests.pipelines.conftest import WaitForJobs

pytestmark = [pytest.mark.timeout(300), pytest.mark.late_alone]

PICTURES = 2_000_000
NAMES = [f"photos/{number}.jpg" for number in range(900)]

COPY = 'cp "$given" "${LOCALPACHD_PFS:-/pfs}/out/"'
INDEX = """
mkdir -p "${LOCALPACHD_PFS:-/pfs}/out/0"
echo '{"count": %d, "model": "a"}' > "${LOCALPACHD_PFS:-/pfs}/out/0/index.json"
"""

LARGER = {"SEGMENT_DIGITS": "2", "PART": "6400"}


def document(name: str, repo: str, glob: str, script: str, **env: str) -> dict[str, Any]:
    return {
        "pipeline": {"name": name},
        "input": {"pfs": {"name": "given", "repo": repo, "branch": "master", "glob": glob}},
        "transform": {
            "image": "shell:1",
            "cmd": ["sh", "-e"],
            "stdin": script.splitlines(),
            "env": {"LOOKALIKE_STAGE": f"{name}-1", **env},
        },
        "resource_requests": {"cpu": 0.1, "memory": "64Mi"},
    }


class Library:
    """images → preprocess → features → index, which claims that there are millions of pictures."""

    def __init__(self, connection: Connection, command: Command) -> None:
        self.connection, self.command = connection, command
        self.specs = command.directory / "specs"
        self.specs.mkdir()
        self.write(document("preprocess", "images", "/*", COPY, IMAGE_SIZE="96", PART="400"))
        self.write(document("features", "preprocess", "/*", COPY, SEGMENT_DIGITS="1"))
        self.write(document("index", "features", "/", INDEX % PICTURES))

    def write(self, specification: Mapping[str, Any]) -> None:
        (self.specs / f"{specification['pipeline']['name']}.json").write_text(json.dumps(specification))

    def change(self, name: str, patch: Mapping[str, Any]) -> None:
        self.write(merge(json.loads((self.specs / f"{name}.json").read_text()), patch))

    def sizes(self) -> dict[str, str]:
        infos = Jobs(self.connection).pipelines()
        return {
            "SEGMENT_DIGITS": infos["features"].details.transform.env["SEGMENT_DIGITS"],
            "PART": infos["preprocess"].details.transform.env["PART"],
        }

    def blocks(self) -> int:
        paths = Repository(self.connection, "images").list()
        return sum(blocknames.prefix_of(path.strip("/")) is not None for path in paths)

    def add(self, directory: Path, names: list[str]) -> str:
        sources = []
        for name in names:
            path = directory / name.replace("/", "-")
            path.write_text(name)
            sources.append(Source(name, path, len(name)))
        return ingest.add(self.connection, sources, most_single=0).commit


@pytest.fixture
def library(as_user: Connection, command: Command, tmp_path: Path, wait_for_jobs: WaitForJobs) -> Library:
    """The library with 900 pictures in four blocks."""
    found = Library(as_user, command)
    command.says("deploy")
    wait_for_jobs(found.add(tmp_path, NAMES))
    assert found.blocks() == 4
    return found


def test_larger_sizes_are_proposed_priced_made_and_kept(
    library: Library, tmp_path: Path, wait_for_jobs: WaitForJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = library.command
    bars: dict[str, list[int]] = {}
    monkeypatch.setattr(progress, "counting", lambda what: nullcontext(bars.setdefault(what, []).append))
    said = command.says("status")
    assert "outgrown  125,000 pictures are in each of 16 segments, and each picture more reads and writes one" in said
    assert "`lookalike upgrade --sizes --dry-run` shows the cost of a change\n" in said
    growth = json.loads(command.says("status", "--json"))["library"]["growth"]
    assert (growth["segment_digits"], growth["part"], growth["in_segment"]) == (1, 400, 125_000)
    assert growth["proposed"] == {"segment_digits": 2, "part": 6400}
    assert len(growth["outgrown"]) == 2

    shown = command.says("upgrade", "--sizes", "--dry-run")
    assert "sizes: SEGMENT_DIGITS=2, PART=6400\n" in shown
    assert "blocks are cut again: up to " in shown
    assert "the backbone computes 2,000,000 pictures again\n" in shown
    assert "16" in next(line for line in shown.splitlines() if line.startswith("index") and "CPU" in line)
    assert library.sizes() == {"SEGMENT_DIGITS": "1", "PART": "400"}
    assert library.blocks() == 4

    before = dict(Repository(library.connection, "images").read_all("/*"))
    data = json.loads(command.run("upgrade", "--sizes", "--yes", "--json").stdout)
    assert data["sizes"] == LARGER
    assert {what: sum(increments) for what, increments in bars.items()} == {"cutting blocks, pictures": len(NAMES)}
    assert {job.state for job in wait_for_jobs(data["commit"])} == {"success"}
    assert library.sizes() == LARGER
    (block,) = dict(Repository(library.connection, "preprocess").read_all("/*")).values()
    assert all(name.encode() in block for name in NAMES)
    assert len(before) == 4

    said = command.says("deploy")
    assert "with SEGMENT_DIGITS=2 of `lookalike upgrade --sizes`" in said
    assert "with PART=6400 of `lookalike upgrade --sizes`" in said
    assert "reprocessing" not in said
    assert library.sizes() == LARGER
    assert "outgrown" not in command.says("status")
    assert "the library has not outgrown its sizes: 7,813 pictures a segment" in command.says(
        "upgrade", "--sizes", "-n"
    )
    library.add(tmp_path, [f"more/{number}.jpg" for number in range(300)])
    assert library.blocks() == 1  # of 1,200


def test_sizes_go_back_when_that_is_said(library: Library) -> None:
    command = library.command
    command.says("upgrade", "--sizes", "--yes")
    command.says("deploy", "--set", "SEGMENT_DIGITS=1")
    assert library.sizes()["SEGMENT_DIGITS"] == "1"
    command.says("upgrade", "--sizes", "--yes")
    assert library.sizes() == LARGER
    library.change("features", {"transform": {"env": {"SEGMENT_DIGITS": "3"}}})
    command.says("deploy")
    assert library.sizes() == {"SEGMENT_DIGITS": "3", "PART": "6400"}
    assert partsizes.SPECIFIED not in Jobs(library.connection).pipelines()["features"].details.metadata.annotations
    refused = command.run("upgrade", "--back", "--sizes").stderr
    assert "takes no --overlay, --set, --as-written or --sizes" in refused
