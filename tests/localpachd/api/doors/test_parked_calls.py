"""Calls that wait hold no thread: thousands of them wait, and all other calls are answered."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from localpachd.api.doors.parked_calls import LIMIT, ParkedCalls
from tests.conditions import until
from tests.servers import Localpachd, StartPachd

_MANY = 700
"""More than the server has threads for calls."""
_SOON = 30.0
_REPO = pfs_pb2.Repo(name="in", type="user", project=pfs_pb2.Project(name="default"))


@pytest.fixture
def server(start_pachd: StartPachd, tmp_path: Path) -> Localpachd:
    made = start_pachd(tmp_path / "root")
    made.client().create_repo("in")
    return made


@pytest.fixture
def channels(server: Localpachd) -> Iterator[list[grpc.Channel]]:
    """Channels with connections of their own."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    with contextlib.ExitStack() as held:
        address = server.address.removeprefix("grpc://")
        yield [held.enter_context(grpc.insecure_channel(address, options)) for _ in range(4)]


def _threads(server: Localpachd) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


def _waits(channels: list[grpc.Channel], commit: Any, number: int) -> list[Callable[[], Any]]:
    """Calls, of several kinds, that wait for the end of a commit: functions that return their first replies."""
    made: list[Callable[[], Any]] = []
    for place in range(number):
        stub = pfs_pb2_grpc.APIStub(channels[place % len(channels)])
        if place % 3 == 0:
            asked = pfs_pb2.InspectCommitRequest(commit=commit, wait=pfs_pb2.FINISHED)
            made.append(partial(stub.InspectCommit.future(asked).result, timeout=_SOON))
        elif place % 3 == 1:
            made.append(
                partial(
                    next, stub.SubscribeCommit(pfs_pb2.SubscribeCommitRequest(repo=_REPO, branch="master", state=4))
                )
            )
        else:
            asked_set = pfs_pb2.InspectCommitSetRequest(commit_set=pfs_pb2.CommitSet(id=commit.id), wait=True)
            made.append(partial(next, stub.InspectCommitSet(asked_set)))
    return made


def test_many_waits_stop_nobody_and_all_are_answered(server: Localpachd, channels: list[grpc.Channel]) -> None:
    client = server.client()
    client.create_repo("other")
    commit = client.start_commit("in", "master")
    calls = _waits(channels, commit, _MANY)
    health = health_pb2_grpc.HealthStub(channels[0])
    assert health.Check(health_pb2.HealthCheckRequest(), timeout=_SOON).status == 1
    with client.modify_file_client(("other", "master")) as writer:
        writer.put_file_from_bytes("/file", b"content")
    assert client.get_file(("other", "master"), "/file").read() == b"content"
    assert _threads(server) < 300
    client.finish_commit(commit)
    for call in calls:
        found = call()
        assert found.commit.id == commit.id
        assert found.HasField("finished")


def test_followed_logs_and_subscriptions_to_jobs_hold_no_thread(
    server: Localpachd, channels: list[grpc.Channel], tmp_path: Path
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    client = server.client()
    client.create_pipeline(
        "copy",
        pps_pb2.Transform(cmd=["sh"], stdin=["echo here", f"cat {go} > /dev/null"]),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/*")),
    )
    pipeline = pps_pb2.Pipeline(name="copy", project=pfs_pb2.Project(name="default"))
    stubs = [pps_pb2_grpc.APIStub(each) for each in channels]
    logs, jobs = pps_pb2.GetLogsRequest(pipeline=pipeline, follow=True), pps_pb2.SubscribeJobRequest(pipeline=pipeline)
    followed = [stubs[place % 4].GetLogs(logs) for place in range(_MANY // 2)]
    subscribed = [stubs[place % 4].SubscribeJob(jobs) for place in range(_MANY // 2)]
    with client.modify_file_client(("in", "master")) as writer:
        writer.put_file_from_bytes("/file", b"content")
    assert any(line.message == "here" for line in followed[0])
    for call in (*followed[1:], *subscribed):
        next(call)
    go.write_text("go")  # jobs that have ended are no news to those who subscribe
    job = next(iter(client.list_job("copy")))
    info = stubs[0].InspectJob(pps_pb2.InspectJobRequest(job=job.job, wait=True), timeout=_SOON)
    assert info.state == pps_pb2.JOB_SUCCESS
    assert _threads(server) < 300
    client.delete_pipeline("copy")
    for call in followed:
        list(call)  # ends with the pipeline


def test_logs_that_nobody_reads_hold_up_no_other_kind_of_call(server: Localpachd, channels: list[grpc.Channel]) -> None:
    client = server.client()
    client.put_file_bytes(("in", "master"), "/file", b"content")
    client.create_pipeline(
        "talk",
        pps_pb2.Transform(cmd=["seq", "-f", f"{'x' * 200} %.0f", "20000"]),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/*")),
    )
    job = next(iter(client.list_job("talk")))
    info = pps_pb2_grpc.APIStub(channels[0]).InspectJob(pps_pb2.InspectJobRequest(job=job.job, wait=True))
    assert info.state == pps_pb2.JOB_SUCCESS
    asked = pps_pb2.GetLogsRequest(pipeline=pps_pb2.Pipeline(name="talk", project=pfs_pb2.Project(name="default")))
    unread = [pps_pb2_grpc.APIStub(channels[place % 4]).GetLogs(asked) for place in range(130)]
    next(unread[0])
    commit = client.start_commit("in", "master")
    waiting = pfs_pb2_grpc.APIStub(channels[1]).InspectCommit.future(
        pfs_pb2.InspectCommitRequest(commit=commit, wait=pfs_pb2.FINISHED)
    )
    client.finish_commit(commit)
    assert waiting.result(timeout=_SOON).HasField("finished")
    for each in unread:
        each.cancel()


@pytest.mark.parametrize(("unread", "ended"), [(23, 0), (24, 24)])
def test_where_many_are_not_read_they_end_soon(unread: int, ended: int) -> None:
    class Unread:
        """A call whose client takes nothing until it is cancelled."""

        def __init__(self) -> None:
            self.cancelled = threading.Event()

        def cancel(self) -> None:
            self.cancelled.set()

        def send(self, reply: object) -> None:
            sending.release()
            self.cancelled.wait(_SOON)

    parking, sending = ParkedCalls(600.0, 0.0), threading.Semaphore(0)
    calls: list[Any] = [Unread() for _ in range(unread)]
    threads = [threading.Thread(target=parking.sent, args=("logs", each, each.send, b"")) for each in calls]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert sending.acquire(timeout=_SOON)
    assert parking.end_idle() == ended
    assert sum(each.cancelled.is_set() for each in calls) == ended
    for each in calls:
        each.cancel()
    for thread in threads:
        thread.join()
    assert parking.end_idle() == 0


@pytest.mark.only_in_all
def test_waits_past_the_limit_are_refused_until_others_end(server: Localpachd, channels: list[grpc.Channel]) -> None:
    commit = server.client().start_commit("in", "master")
    asked = pfs_pb2.InspectCommitRequest(commit=commit, wait=pfs_pb2.FINISHED)
    stubs = [pfs_pb2_grpc.APIStub(each) for each in channels]
    calls = [stubs[place % 4].InspectCommit.future(asked) for place in range(LIMIT + 50)]
    until(lambda: sum(call.done() for call in calls) == 50)
    refused = [call for call in calls if call.done()]
    assert {call.code() for call in refused} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert "calls of pfs_v2.API/InspectCommit are waiting" in refused[0].details()
    # Other kinds wait, and calls of this kind that need not wait are answered.
    assert stubs[0].InspectCommit(pfs_pb2.InspectCommitRequest(commit=commit), timeout=_SOON).commit.id == commit.id
    next(iter(stubs[0].SubscribeCommit(pfs_pb2.SubscribeCommitRequest(repo=_REPO, branch="master"))))
    for call in calls:
        call.cancel()

    def is_waiting() -> bool:
        with pytest.raises(grpc.RpcError) as caught:
            stubs[0].InspectCommit(asked, timeout=0.2)
        return bool(caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED)

    until(is_waiting)


def test_an_error_while_waiting_has_its_code_and_text(server: Localpachd, channels: list[grpc.Channel]) -> None:
    client = server.client()
    commit = client.start_commit("in", "master")
    call = pfs_pb2_grpc.APIStub(channels[0]).SubscribeCommit(
        pfs_pb2.SubscribeCommitRequest(repo=_REPO, branch="master")
    )
    assert next(call).commit.id == commit.id
    client.delete_repo("in", force=True)
    with pytest.raises(grpc.RpcError) as caught:
        next(call)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == "repo default/in not found"


def test_uploads_that_send_nothing_leave_threads_for_other_calls(
    server: Localpachd, channels: list[grpc.Channel]
) -> None:
    ended = False

    def idle() -> Iterator[pfs_pb2.ModifyFileRequest]:
        while not ended:
            time.sleep(0.2)
        return
        yield

    stubs = [pfs_pb2_grpc.APIStub(each) for each in channels]
    uploads = [stubs[place % 4].ModifyFile.future(idle()) for place in range(450)]
    until(lambda: sum(call.done() for call in uploads) >= 450 - 384)
    health = health_pb2_grpc.HealthStub(channels[0])
    assert health.Check(health_pb2.HealthCheckRequest(), timeout=_SOON).status == 1
    refused = [call for call in uploads if call.done()]
    assert {call.code() for call in refused} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    ended = True
    for call in uploads:
        call.cancel()


def test_the_server_stops_soon_while_calls_wait(server: Localpachd, channels: list[grpc.Channel]) -> None:
    commit = server.client().start_commit("in", "master")
    calls = _waits(channels, commit, 300)
    health = health_pb2_grpc.HealthStub(channels[0])
    health.Check(health_pb2.HealthCheckRequest(), timeout=_SOON)
    server.process.terminate()
    assert server.process.wait(timeout=10) == 0
    for call in calls:
        with pytest.raises(grpc.RpcError):
            call()
