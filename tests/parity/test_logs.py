"""The server's lines about a pipeline."""

import pytest
from python_pachyderm import Client

from tests.parity.places import MakeInput, Place


@pytest.mark.only_localpachd("Pachyderm without Loki refuses the log of a pipeline whose workers have not started")
def test_the_master_of_a_new_pipeline_has_a_first_line(client: Client, place: Place, pfs: MakeInput) -> None:
    name = place.pipeline("true", input=pfs(place.repo()))
    line = next(iter(client.get_pipeline_logs(name, master=True, follow=True)))
    assert (line.pipeline_name, line.master, line.user) == (name, True, False)


def test_the_master_of_a_pipeline_that_worked_has_a_first_line(client: Client, place: Place, pfs: MakeInput) -> None:
    repo = place.repo()
    name = place.pipeline("true", input=pfs(repo))
    place.job(name, place.put(repo, a="1"))
    line = next(iter(client.get_pipeline_logs(name, master=True)))
    assert (line.pipeline_name, line.master, line.user) == (name, True, False)
