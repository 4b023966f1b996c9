"""A library that has outgrown its segments, on small stages: what is said of it, and `upgrade --sizes`."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.deployment import part_sizes
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.library import ingest
from pipelines.library.picture_sources import PictureSource
from pipelines.specifications.pipeline_specs import deployed_request
from stages.record.pfs_names import is_block
from tests.command import Command
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.stand_ins import SpecFiles, shell_spec

pytestmark = [pytest.mark.timeout(300), pytest.mark.late_alone]

COPY = 'cp "$given" "${LOCALPACHD_PFS:-/pfs}/out/"'
INDEX = """
segment="${LOCALPACHD_PFS:-/pfs}/out/0"
mkdir -p "$segment/vectors" "$segment/thumbnails"
echo '{"count": %d, "model": "a"}' > "$segment/index.json"
head -c 5000 /dev/zero > "$segment/vectors/00.npy"
head -c 5000 /dev/zero > "$segment/thumbnails/00.thumbnails"
"""

DIGITS = "SEGMENT_DIGITS"


def document(name: str, repo: str, glob: str, script: str, **env: str) -> dict[str, Any]:
    found = shell_spec(name, repo, script, resource_requests={"cpu": 0.1, "memory": "64Mi"})
    found["input"]["pfs"] |= {"name": "given", "glob": glob}
    found["transform"]["env"] = {"LOOKALIKE_STAGE": f"{name}-1", **env}
    return found


class Library(SpecFiles):
    """images → preprocess → features → partition → index, which claims that there are millions of pictures."""

    def __init__(self, connection: Connection, command: Command, pictures: int = 2_000_000) -> None:
        super().__init__(command.directory / "specs")
        self.connection, self.command = connection, command
        self.write(document("preprocess", "images", "/*", COPY, IMAGE_SIZE="96", PART="400"))
        self.write(document("features", "preprocess", "/*", COPY))
        self.write(document("partition", "features", "/*", COPY, SEGMENT_DIGITS="1"))
        self.write(document("index", "partition", "/", INDEX % pictures))

    def env(self, name: str) -> dict[str, str]:
        return dict(ProjectJobs(self.connection).pipelines()[name].details.transform.env)

    def marks(self) -> dict[str, str]:
        """The sizes that the specifications state, where others are kept."""
        infos = ProjectJobs(self.connection).pipelines()
        found = {name: info.details.metadata.annotations.get(part_sizes.SPECIFIED, "") for name, info in infos.items()}
        return {name: mark for name, mark in found.items() if mark}

    def put(self) -> str:
        return Repository(self.connection, "images").write([PutFile("/a", b"one\n"), PutFile("/b", b"two\n")])

    def counts(self, commit: str) -> dict[str, int]:
        """The datums that the jobs of a commit have computed."""
        return {job.pipeline: job.processed for job in ProjectJobs(self.connection).of_set(commit)}


@pytest.fixture
def library(as_user: Connection, command: Command) -> Library:
    return Library(as_user, command)


def test_more_segments_are_proposed_priced_made_and_kept_and_the_backbone_rests(
    library: Library, wait_for_jobs: WaitForJobs
) -> None:
    command = library.command
    command.says("deploy")
    wait_for_jobs(library.put())
    said = command.says("status")
    assert "outgrown  125,000 pictures are in each of 16 segments, and each picture more reads one again" in said
    assert "with --dry-run, `lookalike upgrade` shows the cost and changes nothing\n" in said
    growth = json.loads(command.says("status", "--json"))["library"]["growth"]
    assert (growth["segment_digits"], growth["buckets"], growth["in_segment"]) == (1, 64, 125_000)
    assert growth["proposed"] == {"segment_digits": 2, "buckets": 64}
    assert len(growth["outgrown"]) == 1

    shown = command.says("upgrade", "--sizes", "--dry-run")
    assert "sizes: SEGMENT_DIGITS=2\n" in shown
    assert "the backbone does not run again\n" in shown
    costs = {line.split()[0]: line.split() for line in shown.split("to compute")[1].splitlines()[1:] if "CPU" in line}
    assert {name: line[1] for name, line in costs.items() if name == "partition"} == {"partition": "2"}
    assert "16" in costs["index"]
    assert library.env("partition")[DIGITS] == "1"

    data = json.loads(command.run("upgrade", "--sizes", "--yes", "--json").stdout)
    assert data["sizes"] == {DIGITS: "2"}
    (index,) = (each for each in data["costs"] if each["pipeline"] == "index")
    assert index["bytes"] > 0
    assert {job.state for job in wait_for_jobs(data["commit"])} == {"success"}
    computed = library.counts(data["commit"])
    assert computed["partition"] == 2
    assert not computed.get("preprocess") and not computed.get("features")
    assert library.env("partition")[DIGITS] == "2"

    said = command.says("deploy")
    assert "pipeline partition: updated, with SEGMENT_DIGITS=2 of `lookalike upgrade --sizes`\n" in said
    assert library.env("partition")[DIGITS] == "2"
    assert "outgrown" not in command.says("status")
    assert "the library has not outgrown its segments: 7,813 pictures in each" in command.says(
        "upgrade", "--sizes", "-n"
    )


def test_segments_go_back_when_that_is_said(library: Library, wait_for_jobs: WaitForJobs) -> None:
    command = library.command
    command.says("deploy")
    wait_for_jobs(library.put())
    command.says("upgrade", "--sizes", "--yes")
    command.says("deploy", "--set", "SEGMENT_DIGITS=1")
    assert library.env("partition")[DIGITS] == "1"
    command.says("upgrade", "--sizes", "--yes")
    assert library.env("partition")[DIGITS] == "2"
    command.says("upgrade", "--set", "SEGMENT_DIGITS=1", "--yes")
    assert library.env("partition")[DIGITS] == "1"
    command.says("upgrade", "--sizes", "--yes")
    assert library.env("partition")[DIGITS] == "2"
    library.change("partition", {"transform": {"env": {DIGITS: "3"}}})
    command.says("deploy")
    assert library.env("partition")[DIGITS] == "3"
    assert library.marks() == {}
    refused = command.run("upgrade", "--back", "--sizes").stderr
    assert "takes no --overlay, --set, --as-written or --sizes" in refused


def test_larger_parts_that_an_upgrade_kept_stay_and_add_makes_such_blocks(library: Library, tmp_path: Path) -> None:
    library.command.says("deploy", "--set", "PART=1200")
    info = ProjectJobs(library.connection).pipelines()["preprocess"]
    request = deployed_request(info)
    request.update = True
    part_sizes.mark(request, {"PART": "400"})
    library.connection.client.create_pipeline_from_request(request)
    assert "with PART=1200 of `lookalike upgrade --sizes`" in library.command.says("deploy")
    assert "kept: PART=1200 in preprocess\n" in library.command.says("upgrade", "--yes")
    assert library.env("preprocess")["PART"] == "1200"
    sources = []
    for number in range(1_100):
        path = tmp_path / f"{number}.jpg"
        path.write_text(path.name)
        sources.append(PictureSource(path.name, path, len(path.name)))
    ingest.add(library.connection, sources, most_single=0)
    paths = Repository(library.connection, "images").list()
    assert sum(map(is_block, paths)) == 1


def test_a_library_that_has_outgrown_its_buckets_alone_is_told_of_the_overlay(
    as_user: Connection, command: Command, wait_for_jobs: WaitForJobs
) -> None:
    library = Library(as_user, command, pictures=5_000_000)
    command.says("deploy", "--set", "SEGMENT_DIGITS=2")
    wait_for_jobs(library.put())
    said = command.says("upgrade", "--sizes", "--dry-run")
    assert "78,125 pictures are in each of 64 buckets of partition" in said
    assert "(`lookalike upgrade --overlay large`)\n" in said
    assert "the library has not outgrown its segments: 19,532 pictures in each" in said
