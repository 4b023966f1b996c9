"""The server's lines about a pipeline."""

from python_pachyderm import Client

from tests.parity.places import MakeInput, Place


def test_the_master_of_a_pipeline_has_a_first_line(client: Client, place: Place, pfs: MakeInput) -> None:
    name = place.pipeline("true", input=pfs(place.repo()))
    line = next(iter(client.get_pipeline_logs(name, master=True, follow=True)))
    assert (line.pipeline_name, line.master, line.user) == (name, True, False)
