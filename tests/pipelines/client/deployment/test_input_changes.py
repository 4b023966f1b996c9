"""Deployments that move pipelines to the branch `train`, or cross them with a schedule, and back."""

from pathlib import Path
from typing import Any

import pytest

from pipelines.client import branches
from pipelines.client.deployment import train_branch
from pipelines.client.deployment.deployment import deploy
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.specifications import pipeline_specs
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.stand_ins import SpecFiles

COPY = """
cd "${LOCALPACHD_PFS:-/pfs}"
for each in first second images; do
    if [ -e $each ]; then cp -r $each out/$each; fi
done
"""

pytestmark = pytest.mark.late_alone


def document(name: str, *members: dict[str, Any]) -> dict[str, Any]:
    """A specification that copies each of its inputs into a directory."""
    return {
        "pipeline": {"name": name},
        "input": {"cross": [*members]},
        "transform": {"image": "shell:1", "cmd": ["sh", "-e"], "stdin": [COPY]},
    }


def pfs(repo: str, branch: str = "master") -> dict[str, Any]:
    return {"pfs": {"name": repo, "repo": repo, "branch": branch, "glob": "/"}}


class Chain(SpecFiles):
    """images → first → second → third, which also reads first and images."""

    def __init__(self, connection: Connection, directory: Path) -> None:
        super().__init__(directory)
        self.connection = connection

    def deploy(self, branch: str = "master", *schedule: dict[str, Any]) -> None:
        for each in (
            document("first", pfs("images")),
            document("second", pfs("first", branch), *schedule),
            document("third", pfs("second"), pfs("first", branch), pfs("images", branch)),
        ):
            self.write(each)
        deploy(self.connection, pipeline_specs.load(self.directory))

    def put(self, text: str) -> str:
        return Repository(self.connection, "images").write([PutFile("/a", text.encode())])

    def read(self) -> str:
        return Repository(self.connection, "third").read("/second/first/images/a").decode()

    def newest(self, name: str) -> str:
        job = ProjectJobs(self.connection).newest(name)
        assert job is not None
        return job.id


@pytest.fixture
def chain(connection: Connection, tmp_path: Path, wait_for_jobs: WaitForJobs) -> Chain:
    made = Chain(connection, tmp_path / "specs")
    made.deploy()
    wait_for_jobs(made.put("one"))
    return made


def test_pipelines_that_read_on_request_keep_their_output_and_follow_when_asked(
    chain: Chain, connection: Connection, wait_for_jobs: WaitForJobs
) -> None:
    assert branches.head(connection, "first", "nowhere") == branches.head(connection, "nowhere", "master") == ""
    assert (train_branch.repos(connection), train_branch.head(connection, "first")) == ([], "")
    chain.deploy(train_branch.BRANCH)
    jobs = wait_for_jobs(chain.newest("second"), chain.newest("third"))
    assert {each.pipeline: each.state for each in jobs}["third"] == "success"
    assert train_branch.repos(connection) == ["first", "images"]
    assert not any(each.stopped for each in ProjectJobs(connection).pipelines().values())
    assert chain.read() == "one"

    put = chain.put("two")
    assert {each.pipeline for each in wait_for_jobs(put)} == {"first"}
    assert chain.read() == "one"
    commits = train_branch.newest(connection, train_branch.repos(connection))
    assert commits == {"first": put, "images": put}
    wait_for_jobs(train_branch.move(connection, commits))
    assert chain.read() == "two"
    assert {repo: train_branch.head(connection, repo) for repo in commits} == commits

    chain.deploy()
    wait_for_jobs(chain.put("three"))
    assert chain.read() == "three" and train_branch.repos(connection) == []


def test_a_schedule_in_a_cross_ticks_once_when_it_is_deployed(
    chain: Chain, connection: Connection, wait_for_jobs: WaitForJobs
) -> None:
    schedule = {"cron": {"name": "tick", "spec": "@never", "overwrite": True}}
    chain.deploy("master", schedule)
    wait_for_jobs(chain.newest("second"))
    (tick,) = Repository(connection, "second_tick").list()
    assert chain.read() == "one"
    chain.deploy("master", schedule)
    assert [*Repository(connection, "second_tick").list()] == [tick]
    connection.client.run_cron("second", project_name=connection.project)
    wait_for_jobs(chain.newest("second"))
    assert len([*Repository(connection, "second_tick").list()]) == 1  # with overwrite
    chain.deploy()
    wait_for_jobs(chain.put("two"))
    assert chain.read() == "two"


def test_a_new_pipeline_with_a_schedule_ticks_too(
    connection: Connection, tmp_path: Path, wait_for_jobs: WaitForJobs
) -> None:
    made = Chain(connection, tmp_path / "specs")
    made.deploy("master", {"cron": {"name": "tick", "spec": "@never", "overwrite": True}})
    wait_for_jobs(made.put("one"))
    assert made.read() == "one"
