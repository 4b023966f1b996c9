"""Jobs through the official client: counters, skipping, failure and its effect downstream, stopping, waiting."""

import grpc
import pytest
from google.protobuf import duration_pb2
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from tests.conditions import until
from tests.parity.places import MakeInput, Place, Refusal, commit_of


def test_a_job_of_each_commit_counts_what_it_did(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    name = place.pipeline("cp /pfs/in/* /pfs/out/", input=pfs(repo, name="in"))
    first = place.job(name, place.put(repo, a="1", b="2"))
    assert (first.state, first.data_processed, first.data_skipped, first.data_total) == (pps_pb2.JOB_SUCCESS, 2, 0, 2)
    second = place.job(name, place.put(repo, b="4", c="3"))
    assert (second.data_processed, second.data_skipped, second.data_total) == (2, 1, 3)
    assert second.stats.upload_bytes == 2
    assert second.started.seconds <= second.finished.seconds
    assert second.output_commit.repo.name == second.output_commit.branch.repo.name == name
    assert second.details.input.pfs.commit == second.job.id
    assert place.paths(name) == ["/a", "/b", "/c"]
    assert place.read(name, "/b") == "4"


def test_links_are_not_counted_as_uploaded(place: Place, pfs: MakeInput, client: Client) -> None:
    """Neither those to inputs, which are copied by reference or not, nor those out of /pfs: `tarutil.Export` skips
    them, and only its headers are counted (src/server/worker/datum/datum.go)."""
    script = "echo 1234 > /tmp/own; ln -s /tmp/own /pfs/out/own; ln -s /pfs/in/a /pfs/out/b; echo 12 > /pfs/out/c"
    for lazy in (False, True):
        repo = place.repo()
        name = place.pipeline(script, input=pfs(repo, name="in", lazy=lazy))
        job = place.job(name, place.put(repo, a="1" * 100))
        assert (job.stats.upload_bytes, place.paths(name)) == (3, ["/b", "/c", "/own"])


def test_deleting_an_input_deletes_its_output(place: Place, pfs: MakeInput) -> None:
    repo = place.repo()
    name = place.pipeline("cp /pfs/in/* /pfs/out/", input=pfs(repo, name="in"))
    place.job(name, place.put(repo, a="1", b="2"))
    job = place.job(name, place.put(repo, a=None))
    assert (job.data_processed, job.data_skipped, job.data_total) == (0, 1, 1)
    assert place.paths(name) == ["/b"]


def test_no_datums_is_success(place: Place, pfs: MakeInput) -> None:
    empty, repo = place.repo("a"), place.repo("b")
    crossed = pps_pb2.Input(cross=[pfs(empty), pfs(repo)])
    name = place.pipeline("exit 1", input=crossed)
    job = place.job(name, place.put(repo, a="1"))
    assert (job.state, job.data_total) == (pps_pb2.JOB_SUCCESS, 0)


def test_a_failed_datum_fails_the_job_and_makes_downstream_unrunnable(
    place: Place, pfs: MakeInput, client: Client
) -> None:
    repo = place.repo()
    name = place.pipeline("cp /pfs/in/* /pfs/out/\ntest ! -e /pfs/in/bad", input=pfs(repo, name="in"), datum_tries=1)
    below = place.pipeline("true", input=pfs(name, name="upstream"))
    last = place.pipeline("true", input=pfs(below, name="upstream"))
    commit = place.put(repo, good="1", bad="2")
    job = place.job(name, commit)
    (failed,) = client.list_datum(name, commit, datum_filter=_states(pps_pb2.FAILED))
    assert failed.stats.HasField("process_time") and not failed.stats.HasField("upload_time")
    assert (job.state, job.reason) == (pps_pb2.JOB_FAILURE, f"datum {failed.datum.id} failed")
    assert (job.data_processed, job.data_failed) == (1, 1)
    for each in (below, last):
        unrunnable = place.job(each, commit)
        assert unrunnable.state == pps_pb2.JOB_UNRUNNABLE
        assert unrunnable.stats == pps_pb2.ProcessStats()
        assert unrunnable.reason == "unrunnable because the following upstream pipelines failed: upstream"
    (output,) = client.inspect_commit((name, "master", commit))
    assert output.error == job.reason
    # The output of the failed job can be read there, but no later commit builds on it.
    assert place.paths(name, commit) == ["/good"]
    fixed = place.job(name, place.put(repo, bad=None))
    assert (fixed.state, fixed.data_processed, fixed.data_skipped) == (pps_pb2.JOB_SUCCESS, 1, 0)


def _states(*states: int) -> pps_pb2.ListDatumRequest.Filter:
    return pps_pb2.ListDatumRequest.Filter(state=list(states))


def test_two_datums_with_one_path_fail_the_job_at_its_end(place: Place, pfs: MakeInput) -> None:
    repo = place.repo()
    name = place.pipeline("echo x > /pfs/out/same", input=pfs(repo))
    job = place.job(name, place.put(repo, a="1", b="2"))
    assert (job.state, job.data_processed) == (pps_pb2.JOB_FAILURE, 2)
    assert job.reason.startswith("duplicate path output by different datums (/same from ")
    mended = place.job(name, place.put(repo, b=None))
    assert (mended.state, mended.data_processed, mended.data_skipped) == (pps_pb2.JOB_SUCCESS, 1, 0)


def test_a_datum_that_err_cmd_recovers_is_tried_again_by_the_next_job(place: Place, pfs: MakeInput) -> None:
    repo = place.repo()
    recovering = pps_pb2.Transform(err_cmd=["true"])
    name = place.pipeline("echo x > /pfs/out/x; exit 1", transform=recovering, input=pfs(repo), datum_tries=2)
    job = place.job(name, place.put(repo, a="1"))
    assert (job.state, job.data_recovered, job.data_processed) == (pps_pb2.JOB_SUCCESS, 1, 0)
    assert place.paths(name) == []
    again = place.job(name, place.put(repo, b="2"))
    assert (again.data_recovered, again.data_skipped) == (2, 0)


def test_accepted_return_codes_are_success(place: Place, pfs: MakeInput) -> None:
    repo = place.repo()
    accepting = pps_pb2.Transform(accept_return_code=[7])
    name = place.pipeline("exit 7", transform=accepting, input=pfs(repo), datum_tries=1)
    assert place.job(name, place.put(repo, a="1")).state == pps_pb2.JOB_SUCCESS


def test_a_datum_that_takes_too_long_fails(place: Place, pfs: MakeInput) -> None:
    repo = place.repo()
    name = place.pipeline(
        "sleep 60", input=pfs(repo), datum_tries=1, datum_timeout=duration_pb2.Duration(nanos=300_000_000)
    )
    assert place.job(name, place.put(repo, a="1")).state == pps_pb2.JOB_FAILURE


def test_a_job_that_takes_too_long_is_killed(place: Place, pfs: MakeInput) -> None:
    repo = place.repo()
    name = place.pipeline("sleep 60", input=pfs(repo), job_timeout=duration_pb2.Duration(seconds=1))
    job = place.job(name, place.put(repo, a="1"))
    assert job.state == pps_pb2.JOB_KILLED
    assert "timed out" in job.reason


def test_a_stopped_job_is_killed_and_its_commit_carries_the_reason(
    place: Place, pfs: MakeInput, client: Client, stub: pfs_pb2_grpc.APIStub
) -> None:
    repo = place.repo()
    name = place.pipeline("sleep 60", input=pfs(repo))
    commit = place.put(repo, a="1")
    client.stop_job(commit, name, reason="enough")
    job = place.job(name, commit)
    assert (job.state, job.reason) == (pps_pb2.JOB_KILLED, "enough")
    for kind in ("user", "meta"):
        made = commit_of(name, commit, "master")
        made.repo.type = made.branch.repo.type = kind
        assert stub.InspectCommit(pfs_pb2.InspectCommitRequest(commit=made)).error == "enough"
    client.stop_job(commit, name, reason="again")
    assert place.job(name, commit).reason == "enough"


def test_a_deleted_job_is_gone(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    name = place.pipeline("true", input=pfs(repo))
    commit = place.put(repo, a="1")
    place.job(name, commit)
    client.delete_job(commit, name)
    with pytest.raises(grpc.RpcError, match="not found"):
        list(client.inspect_job(commit, pipeline_name=name))
    assert commit not in {info.job.id for info in client.list_job(pipeline_name=name)}


def test_a_set_of_jobs_comes_upstream_first_and_can_be_waited_for(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    above = place.pipeline("cp /pfs/in/* /pfs/out/", input=pfs(repo, name="in"))
    below = place.pipeline("cp /pfs/in/* /pfs/out/", input=pfs(above, name="in"))
    commit = place.put(repo, a="1")
    found = list(client.inspect_job(commit, wait=True))
    assert [(info.job.pipeline.name, info.state) for info in found] == [
        (above, pps_pb2.JOB_SUCCESS),
        (below, pps_pb2.JOB_SUCCESS),
    ]
    assert place.read(below, "/a") == "1"


def test_jobs_are_listed_newest_first_by_set_and_by_pipeline(
    place: Place, pfs: MakeInput, client: Client, pps_stub: pps_pb2_grpc.APIStub
) -> None:
    repo = place.repo()
    name = place.pipeline("true", input=pfs(repo))
    commits = [place.put(repo, a=str(number)) for number in range(3)]
    for commit in commits:
        place.job(name, commit)
    listed = [info.job.id for info in client.list_job(pipeline_name=name)]
    assert listed[:3] == commits[::-1]
    assert [info.job.id for info in client.list_job(pipeline_name=name, number=2)] == commits[:0:-1]
    every = pps_stub.ListJob(pps_pb2.ListJobRequest(pipeline=pps_pb2.Pipeline(name=name), number=-1))
    assert [info.job.id for info in every] == listed
    sets = [each.job_set.id for each in client.list_job() if any(job.job.pipeline.name == name for job in each.jobs)]
    assert sets[:3] == commits[::-1]
    reading = client.list_job(pipeline_name=name, input_commit=[commit_of(repo, commits[1])])
    assert [info.job.id for info in reading] == [commits[1]]


@pytest.mark.crashes_pachd("an input commit that has its repo only within its branch")
def test_jobs_are_found_by_an_input_commit_as_the_client_sends_it(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    name = place.pipeline("true", input=pfs(repo))
    first, _ = place.put(repo, a="1"), place.put(repo, a="2")
    reading = client.list_job(pipeline_name=name, input_commit=[(repo, "master", first)])
    assert [info.job.id for info in reading] == [first]


def test_a_filter_on_the_state_is_evaluated(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    name = place.pipeline("exit 1", input=pfs(repo), datum_tries=1)
    commit = place.put(repo, a="1")
    place.job(name, commit)

    def ids(text: str) -> list[str]:
        return [info.job.id for info in client.list_job(pipeline_name=name, jqFilter=text)]

    assert ids('.state == "JOB_FAILURE" or .state == "JOB_KILLED"') == [commit]
    assert commit not in ids('.state == "JOB_SUCCESS"')


def test_an_open_input_holds_the_job_back(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    name = place.pipeline("cp /pfs/in/* /pfs/out/", input=pfs(repo, name="in"))
    commit = client.start_commit(repo, "master")
    (job,) = client.inspect_job(commit.id, pipeline_name=name)
    assert job.state in (pps_pb2.JOB_CREATED, pps_pb2.JOB_STARTING)
    client.put_file_bytes(commit, "/a", b"1")
    client.finish_commit(commit)
    assert place.job(name, commit.id).state == pps_pb2.JOB_SUCCESS
    assert place.read(name, "/a") == "1"


def test_restarting_a_datum_costs_an_attempt(place: Place, pfs: MakeInput, client: Client, refusal: Refusal) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    name = place.pipeline("sleep 60", input=pfs(repo), datum_tries=2)
    newest = next(iter(client.list_job(pipeline_name=name))).job.id

    def began() -> int:
        """When the present attempt began, in nanoseconds; 0 if no worker is at it."""
        (info,) = client.inspect_job(newest, pipeline_name=name, details=True)
        at_work = [each.datum_status.started for each in info.details.worker_status if each.datum_status.data]
        return max((started.ToNanoseconds() for started in at_work), default=0)

    last = 0
    for _ in range(2):
        until(lambda before=last: began() > before)  # type: ignore[misc]
        last = began()
        client.restart_datum(name, newest, data_filters=("/a",))
    job = place.job(name, newest)
    assert (job.state, job.data_failed) == (pps_pb2.JOB_FAILURE, 1)
    assert refusal(client.restart_datum, name, newest, data_filters=("/a",)) == (
        grpc.StatusCode.UNKNOWN,
        f"datum matching filter [/a] could not be found for job ID {newest}",
    )
