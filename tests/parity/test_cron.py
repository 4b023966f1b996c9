"""Cron inputs and triggers through the official client. No test waits for a clock."""

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.conditions import until
from tests.parity.places import MakeInput, Place, listed_repos

NEVER = pps_pb2.Input(cron=pps_pb2.CronInput(name="tick", spec="@never"))


def test_run_cron_makes_a_tick_and_a_job(place: Place, client: Client) -> None:
    name = place.pipeline("ls /pfs/tick > /pfs/out/seen", input=NEVER)
    client.run_cron(name)
    (tick,) = place.paths(f"{name}_tick")
    newest = next(iter(client.list_job(pipeline_name=name)))
    job = place.job(name, newest.job.id)
    assert (job.state, job.data_processed, job.data_total) == (pps_pb2.JOB_SUCCESS, 1, 1)
    assert place.read(name, "/seen") == tick.removeprefix("/") + "\n"


def test_a_cron_input_is_shown_with_its_repo_and_start(place: Place, client: Client) -> None:
    name = place.pipeline("true", input=NEVER)
    (info,) = client.inspect_pipeline(name, details=True)
    cron = info.details.input.cron
    assert (cron.repo, cron.spec, cron.overwrite) == (f"{name}_tick", "@never", False)
    assert cron.start.seconds > 0
    assert client.inspect_repo(f"{name}_tick").description == f"Cron tick repo for pipeline default/{name}."
    client.delete_pipeline(name)
    assert f"{name}_tick" not in {each.repo.name for each in listed_repos(client)}


def test_run_cron_of_a_pipeline_without_cron_inputs_is_refused(place: Place, pfs: MakeInput, client: Client) -> None:
    name = place.pipeline("true", input=pfs(place.repo()))
    with pytest.raises(grpc.RpcError, match="pipeline doesn't have a cron input"):
        client.run_cron(name)


def test_an_invalid_schedule_is_refused(place: Place, client: Client) -> None:
    wrong = pps_pb2.Input(cron=pps_pb2.CronInput(name="tick", spec="soon"))
    with pytest.raises(grpc.RpcError, match="error parsing cron-spec"):
        place.pipeline("true", input=wrong)


def test_a_branch_with_a_trigger_follows_another(place: Place, client: Client) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    trigger = pfs_pb2.Trigger(branch="master", commits=2, all=True)
    client.create_branch(repo, "staging", trigger=trigger)
    assert client.inspect_branch(repo, "staging").trigger == trigger
    second = place.put(repo, b="2")
    client.wait_commit(second)
    assert client.inspect_branch(repo, "staging").head.id == second
    third = place.put(repo, c="3")
    client.wait_commit(third)
    assert client.inspect_branch(repo, "staging").head.id == second
    fourth = place.put(repo, d="4")
    client.wait_commit(fourth)
    assert client.inspect_branch(repo, "staging").head.id == fourth


def test_an_input_with_a_trigger_has_a_branch_of_its_own(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    trigger = pfs_pb2.Trigger(commits=1)
    name = place.pipeline("cp /pfs/in/* /pfs/out/", input=pfs(repo, name="in", trigger=trigger))
    (info,) = client.inspect_pipeline(name, details=True)
    branch = info.details.input.pfs.branch
    assert branch == f"{name}-trigger-1"
    assert client.inspect_branch(repo, branch).trigger.branch == "master"


def test_an_input_with_a_trigger_follows_the_output_of_a_pipeline(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    first = place.pipeline("cp /pfs/in/* /pfs/out/", input=pfs(repo, name="in"))
    trigger = pfs_pb2.Trigger(branch="master", commits=1)
    second = place.pipeline("cp /pfs/in/* /pfs/out/", input=pfs(first, name="in", branch="held", trigger=trigger))
    for name, seen in (("a", ["/a"]), ("b", ["/a", "/b"])):
        put = place.put(repo, **{name: name})
        place.job(first, put)
        until(lambda put=put: client.inspect_branch(first, "held").head.id == put)  # type: ignore[misc]
        newest = next(iter(client.list_job(pipeline_name=second)))
        assert newest.job.id != put  # the trigger's is a step of its own
        assert place.job(second, newest.job.id).state == pps_pb2.JOB_SUCCESS
        assert place.paths(second) == seen


def test_an_invalid_trigger_is_refused(place: Place, client: Client) -> None:
    repo = place.repo()
    for trigger, text in (
        (pfs_pb2.Trigger(branch="master", size="huge"), "invalid trigger size"),
        (pfs_pb2.Trigger(branch="x", commits=1), "triggers cannot form a loop"),
    ):
        with pytest.raises(grpc.RpcError, match=text):
            client.create_branch(repo, "x", trigger=trigger)
