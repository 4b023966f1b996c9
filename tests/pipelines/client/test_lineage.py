"""The facts about jobs and commits, in one order each time they are asked for."""

import pytest

from pipelines.client.lineage import Lineage
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.stand_ins import deploy_specs, shell_spec

pytestmark = pytest.mark.late_alone


def test_the_variables_of_a_job_are_in_the_order_of_their_names(
    connection: Connection, wait_for_jobs: WaitForJobs
) -> None:
    env = {f"V{at * 7 % 20:02}": str(at) for at in range(20)}
    deploy_specs(connection, shell_spec("p", "in", transform={"image": "shell:1", "cmd": ["true"], "env": env}))
    (job,) = wait_for_jobs(Repository(connection, "in").write([PutFile("/a", b"")]))
    found = Lineage(connection).job("p", job.id)
    assert found is not None and [*found.environment] == sorted(env)
