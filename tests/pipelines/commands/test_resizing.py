"""One step to another size of pictures: `lookalike model push --image-size`, and deployments after it."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format

from pipelines.client import backbones, commit_owner
from pipelines.client.deployment import deployment
from pipelines.client.deployment.deployment import DEPLOYED_BY
from pipelines.client.deployment.image_sizes import IMAGE_SIZE, SPECIFIED
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.library import backbone_push
from pipelines.library.datasets.samples import library_crops
from pipelines.specifications import pipeline_specs
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, BackboneSpec, WeightsOrigin, format_spec, parse_spec
from stages.backbone.photographs import open_photograph
from stages.files.packs import parse_pack
from tests.command import Command

BEFORE = BackboneSpec("efficientnet-lite0", 96, "avg", 4, 32, "float32", WeightsOrigin("a test", "0" * 64), "1" * 64)

FEATURES = r"""
while grep -q '"image_size": 96' "$models/backbone.json"; do sleep 0.05; done
cp -r "$models/backbone.json" "${LOCALPACHD_PFS:-/pfs}/out/$(basename "$pictures").json"
"""
"""Replaces the stage: busy for as long as the job lasts with a backbone for 96 pixels."""

OF_A_CLUSTER = {
    "pod_patch": '[{"op": "add", "path": "/priorityClassName", "value": "low"}]',
    "tolerations": [{"key": "spot", "operator": "EXISTS"}],
    "resource_requests": {"cpu": 0.5, "memory": "2Gi"},
    "metadata": {"labels": {"team": "vision"}},
    "datum_timeout": "3600s",
}
"""Fields such as overlays add."""


class Specs:
    """A directory of specifications of preprocess and a `features` that is not the real one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        for spec in pipeline_specs.load():
            if spec.name.startswith("preprocess"):
                self.write(spec.name, dict(spec.document) | OF_A_CLUSTER)
        self.size(96)
        cross = [
            {"pfs": {"name": "models", "repo": "models", "branch": "master", "glob": "/"}},
            {"pfs": {"name": "pictures", "repo": "preprocess", "branch": "master", "glob": "/library/*"}},
        ]
        transform = {"cmd": ["sh", "-e"], "stdin": FEATURES.splitlines()}
        self.write("features", {"pipeline": {"name": "features"}, "input": {"cross": cross}, "transform": transform})

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        (self.directory / f"{name}.json").write_text(json.dumps(document))

    def change(self, **changes: Any) -> None:
        for path in self.directory.glob("preprocess*.json"):
            self.write(path.stem, json.loads(path.read_text()) | changes)

    def size(self, size: int) -> None:
        for path in self.directory.glob("preprocess*.json"):
            document = json.loads(path.read_text())
            document["transform"]["env"][IMAGE_SIZE] = str(size)
            self.write(path.stem, document)


@dataclass(frozen=True)
class Library:
    """A library with two pictures, a job of features that is busy, and the command that waits for it."""

    specs: Specs
    adding: "subprocess.Popen[str]"


@pytest.fixture
def library(as_user: Connection, command: Command, tmp_path: Path) -> Iterator[Library]:
    """Deployed at 96 pixels, with a backbone for them."""
    found = Specs(command.directory / "specs")
    deployment.deploy(as_user, pipeline_specs.load(found.directory))
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / MODEL_FILE).write_bytes(b"a model")
    (tmp_path / "made" / SPEC_FILE).write_text(format_spec(BEFORE))
    backbone_push.put(Repository(as_user, backbones.REPO), BEFORE, tmp_path / "made")
    for name, crop in zip("ab", library_crops(open_photograph("cat"), "cat", 0), strict=False):
        crop.save(command.directory / f"{name}.png")
    with command.start("add", "a.png", "b.png") as adding:
        while [(job.state, job.total) for job in ProjectJobs(as_user).queue("features")] != [("running", 2)]:
            pass
        yield Library(found, adding)
        adding.kill()


def jobs(connection: Connection) -> dict[str, list[str]]:
    """The ids of all jobs of each pipeline, of older versions too."""
    client, project = connection.client, connection.project
    return {
        name: [info.job.id for info in client.list_job(name, history=-1, project_name=project)]
        for name in ("preprocess", "preprocess-queries", "features")
    }


def specified(connection: Connection, name: str) -> dict[str, Any]:
    """What a specification says of a deployed pipeline."""
    found: dict[str, Any] = json_format.MessageToDict(ProjectJobs(connection).pipelines()[name].details)
    for each in ("createdAt", "salt", "workersRequested", "workersAvailable"):
        found.pop(each, None)
    return found


def sides(connection: Connection) -> set[int]:
    """The sides of the pictures in the library's packs."""
    packs = Repository(connection, "preprocess").read_all("/library/*/*.pack")
    return {parse_pack(content, path).framing.side for path, content in packs}


def test_a_push_changes_pictures_and_backbone_at_once_and_deployments_keep_that(
    as_user: Connection, command: Command, library: Library
) -> None:
    before, details = jobs(as_user), {name: specified(as_user, name) for name in ("preprocess", "preprocess-queries")}
    said = command.says("model", "push", "efficientnet-lite0", "--image-size", "64")
    assert (
        "pictures change from 96 to 64 pixels in preprocess and preprocess-queries: all of them are computed again, "
        "and everything below\nthe way back: lookalike model push efficientnet-lite0 --image-size 96\n"
        f"stopped features: job {before['features'][0]}, of the backbone before\n"
        "pushed efficientnet-lite0 for 64 × 64 pixels into models: commit "
    ) in said
    commit = said.split(": commit ")[1][:32]
    assert jobs(as_user) == {name: [commit, *ids] for name, ids in before.items()}
    newest, *_ = json.loads(command.says("history", "--json", "--limit", "1"))  # one change, though of two commits
    assert (newest["id"], newest["model"]["after"][:26]) == (commit, "efficientnet-lite0 at 64 p")
    assert [(each["name"], each["after"]) for each in newest["settings"]] == [("IMAGE_SIZE", "64")]
    assert {job.state for job in ProjectJobs(as_user).of_set(commit)} == {"success"}
    assert sides(as_user) == {64}
    results = dict(Repository(as_user, "features").read_all("/*.json"))
    assert len(results) == 2
    assert {parse_spec(each).image_size for each in results.values()} == {64}
    for name, old in details.items():
        new = specified(as_user, name)
        assert (new["transform"]["env"].pop(IMAGE_SIZE), old["transform"]["env"].pop(IMAGE_SIZE)) == ("64", "96")
        assert new["metadata"]["annotations"].pop(SPECIFIED) == "96"
        by = old["metadata"]["annotations"].pop(DEPLOYED_BY), new["metadata"]["annotations"].pop(DEPLOYED_BY)
        assert by == (
            commit_owner.current_process().user,
            f"{commit_owner.current_process().user}: model push efficientnet-lite0 --image-size 64",
        )
        assert new == old
    stopped = ProjectJobs(as_user).of("features", before["features"][0])
    assert stopped is not None
    assert (stopped.state, stopped.reason) == (
        "killed",
        "replaced by efficientnet-lite0 of 64 × 64 pixels (lookalike model push)",
    )
    assert "waits behind" not in command.says("status")

    _, complaint = library.adding.communicate()
    assert complaint == (
        f"lookalike: features did not succeed: {stopped.reason}; the newer commit {commit} supersedes this one: see "
        "`lookalike status`\n"
    )

    # A deployment keeps the size until the specifications change it.
    kept = "with IMAGE_SIZE=64 of `lookalike model push`"
    said = command.says("deploy", "--specs", "specs", "--force")
    assert said.count(f": unchanged, {kept}\n") == 2
    library.specs.change(description="another")
    said = command.says("deploy", "--specs", "specs", "--force")
    assert said.count(f": updated, {kept}\n") == 2
    assert said.count("unchanged, ") == 0
    said = command.says("deploy", "--specs", "specs", "--force", "--set", "IMAGE_SIZE=96")
    assert said.count(": updated, reprocessing everything\n") == 2
    library.specs.size(80)
    said = command.says("deploy", "--specs", "specs", "--force")
    assert said.count(": updated, reprocessing everything\n") == 2
    mismatch = (
        "pictures are 80 × 80 pixels, but the backbone efficientnet-lite0 takes 64 × 64: "
        "`lookalike model push efficientnet-lite0 --image-size 80` (or 64) brings both to one size\n"
    )
    assert mismatch in said
