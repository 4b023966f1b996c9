"""Deploying: creating, leaving alone, updating and reprocessing pipelines."""

from pathlib import Path
from typing import Any

import pytest

from pipelines.client.deployment.deployment import DeploymentResult, deploy
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.pipeline_owner import ANNOTATION
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.specifications import pipeline_specs
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.grpc_proxy import BusyDatabase, passed_on
from tests.pipelines.stand_ins import SpecFiles

COPY: dict[str, Any] = {
    "pipeline": {"name": "copy"},
    "input": {"pfs": {"name": "in", "repo": "in", "branch": "master", "glob": "/*"}},
    "transform": {"image": "shell:1", "cmd": ["sh"], "stdin": ["cp -r /pfs/in/* /pfs/out"], "env": {"A": "1"}},
}

pytestmark = pytest.mark.late_alone


class Specs(SpecFiles):
    """A directory of specifications, deployed into a project."""

    def __init__(self, connection: Connection, directory: Path) -> None:
        super().__init__(directory)
        self.connection = connection

    def deploy(self) -> dict[str, str]:
        heard: list[DeploymentResult] = []
        done = deploy(self.connection, pipeline_specs.load(self.directory), heard.append)
        assert heard == done
        return {each.name: each.action for each in done}

    def info(self, name: str = "copy") -> Any:
        return ProjectJobs(self.connection).pipelines()[name]


@pytest.fixture
def here(connection: Connection, tmp_path: Path) -> Specs:
    return Specs(connection, tmp_path / "specs")


AGAIN = "updated, reprocessing everything"


def test_pipelines_are_created_once_and_then_left_alone(here: Specs) -> None:
    here.write(COPY)
    here.write(COPY, pipeline={"name": "again"}, input={"pfs": {"repo": "copy", "glob": "/"}})
    (here.directory / "README.txt").write_text("not a specification")
    assert here.deploy() == {"in": "created", "copy": "created", "again": "created"}
    version = here.info().version
    assert here.deploy() == {"in": "unchanged", "copy": "unchanged", "again": "unchanged"}
    assert here.info().version == version
    (spec,) = (each for each in pipeline_specs.load(here.directory) if each.name == "copy")
    assert here.info().details.metadata.annotations[ANNOTATION] == spec.fingerprint


@pytest.mark.parametrize("kind", ["refused", "done"])
def test_a_busy_database_changes_no_deployment(here: Specs, kind: str) -> None:
    here.write(COPY)
    calls = ("CreateRepo", "CreatePipeline")

    def deploy_busily() -> dict[str, str]:
        with passed_on(here.connection, database=BusyDatabase(**{kind: dict.fromkeys(calls, 1)})) as through:
            return {each.name: each.action for each in deploy(through, pipeline_specs.load(here.directory))}

    assert deploy_busily() == {"in": "created", "copy": "created"}
    assert here.info().version == 1
    here.write(COPY, transform={"cmd": ["sh", "-e"]})
    assert deploy_busily() == {"in": "unchanged", "copy": AGAIN}
    assert here.info().version == 2


@pytest.mark.versions
def test_existing_repos_are_used(here: Specs) -> None:
    here.connection.client.create_repo("in", project_name=here.connection.project)
    Repository(here.connection, "in").write([PutFile("/a", b"a")])
    here.write(COPY)
    assert here.deploy() == {"in": "unchanged", "copy": "created"}
    assert Repository(here.connection, "in").exists("/a")


def test_a_pipeline_is_reprocessed_if_its_code_differs(here: Specs) -> None:
    """Each change takes the one before back."""
    here.write(COPY)
    here.deploy()
    code: list[dict[str, Any]] = [{"image": "shell:2"}, {"cmd": ["sh", "-e"]}, {"stdin": ["true"]}]
    code += [{"env": {"A": "2"}}, {"env": {"A": "1", "B": ""}}]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"description": "another"}, "updated"),
        ({"datum_tries": 1}, "updated"),
        ({"resource_requests": {"cpu": 0.5}}, "updated"),
        ({"metadata": {"annotations": {"note": "mine"}}}, "updated"),
        *(({"transform": COPY["transform"] | each}, AGAIN) for each in code),
    ]
    for changes, action in cases:
        here.write(COPY, **changes)
        assert here.deploy()["copy"] == action, changes
        assert here.deploy()["copy"] == "unchanged"


def test_what_is_reprocessed_is_computed_again(here: Specs, wait_for_jobs: WaitForJobs) -> None:
    here.write(COPY)
    here.deploy()
    wait_for_jobs(Repository(here.connection, "in").write([PutFile("/a", b"a"), PutFile("/b", b"b")]))
    for changes, computed, skipped in (
        ({"description": "another"}, 0, 2),
        ({"transform": COPY["transform"] | {"image": "shell:2"}}, 2, 0),
    ):
        here.write(COPY, **changes)
        here.deploy()
        job = ProjectJobs(here.connection).newest("copy")
        assert job is not None
        (done,) = wait_for_jobs(job.id)
        assert (done.processed, done.skipped) == (computed, skipped)


def test_an_unnamed_image_is_pachyderms_default(here: Specs) -> None:
    nameless = {"cmd": ["sh"], "stdin": ["true"]}
    here.write(COPY, transform=nameless)
    here.deploy()
    here.write(COPY, transform=nameless, description="another")
    assert here.deploy()["copy"] == "updated"


def test_updates_by_other_means_are_undone(here: Specs) -> None:
    here.write(COPY)
    here.deploy()
    request = next(iter(pipeline_specs.load(here.directory))).request()
    request.pipeline.project.name = here.connection.project
    request.update = True
    request.description = "by hand"
    here.connection.client.create_pipeline_from_request(request)
    assert here.deploy()["copy"] == "updated"
    assert here.info().details.description == ""


def test_a_refusal_names_the_file(here: Specs) -> None:
    here.write(COPY, input={"pfs": {"repo": "in", "name": "out", "glob": "/"}})
    with pytest.raises(LookalikeError, match=r"copy\.json: .*cannot be named out"):
        here.deploy()


def test_the_real_specifications_are_deployed(connection: Connection) -> None:
    done = {each.name: each.action for each in deploy(connection, pipeline_specs.load())}
    assert set(done.values()) == {"created"}
    assert set(done) == {"images", "masks", "models", "queries", *ProjectJobs(connection).pipelines()}
    assert {each.action for each in deploy(connection, pipeline_specs.load())} == {"unchanged"}
