"""Clients that a server has to hold: the memory for them, and the time of other calls beside them."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import grpc
import python_pachyderm
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from benchmarks.kit import servers
from benchmarks.kit.report import Line, Result, Row, line
from benchmarks.kit.servers import Server
from benchmarks.server.datums import wait

LATE = 3.0
"""The goal for the 95th percentile of other calls, beside that of a server that holds nobody."""

_CALLS = 300
_FILE_MIB = 16
_LINES = 20_000
_CONNECTIONS = 8
_PACE = 0.005
Held = Callable[[Server, int], Callable[[grpc.Channel], Any]]


def measure_held(readers: int, waiters: int, logs: int) -> Result:
    """`readers` downloads that nobody reads, `waiters` calls that wait for a commit, `logs` readers of a log who take
    one line: the memory of the server while it holds them, beside that before, and the 95th percentile of other calls,
    beside that of the same server alone."""
    results = [
        _measure("downloads that nobody reads", readers, _downloads),
        _measure("calls that wait", waiters, _waits),
        _measure("logs of which one line is read", logs, _logs),
    ]
    return Result(
        tuple(row for result in results for row in result.rows),
        tuple(each for result in results for each in result.lines),
    )


def _measure(what: str, number: int, prepare: Held) -> Result:
    section = f"{number:,} {what}"
    with servers.localpachd() as server, ExitStack() as held:
        client = server.client()
        hold = prepare(server, number)
        alone = _late(client)
        server.forget_peak()
        before = server.memory
        options = (("grpc.use_local_subchannel_pool", 1),)
        channels = [
            held.enter_context(grpc.insecure_channel(f"127.0.0.1:{server.port}", options)) for _ in range(_CONNECTIONS)
        ]
        calls = [hold(channels[each % _CONNECTIONS]) for each in range(number)]
        beside = _late(client)
        peak = server.peak
        for each in calls:
            each.cancel()
    rows = (Row(section, "ours", beside, None, peak), Row(section, "bound", alone, None, before))
    return Result(rows, _lines(section, peak, before, beside, alone))


def _lines(section: str, peak: float, before: float, beside: float, alone: float) -> tuple[Line, ...]:
    goal = f"{LATE:.0f} times the server alone"
    return (
        line(f"{section}: memory", peak, before, "MiB", digits=0),
        line(f"{section}: 95 % of calls", beside * 1e3, alone * 1e3, "ms", goal, beside <= LATE * alone),
    )


def _downloads(server: Server, number: int) -> Callable[[grpc.Channel], Any]:
    client = server.client()
    client.create_repo("large")
    client.put_file_bytes(("large", "master"), "/file", bytes(range(256)) * (_FILE_MIB << 12))
    (head,) = client.inspect_commit(("large", "master"))
    request = pfs_pb2.GetFileRequest(file=pfs_pb2.File(commit=head.commit, path="/file")).SerializeToString()
    return lambda channel: _begun(channel, "pfs_v2.API/GetFile", request)


def _waits(server: Server, number: int) -> Callable[[grpc.Channel], Any]:
    client = server.client()
    client.create_repo("open")
    commit = client.start_commit("open", "master")
    request = pfs_pb2.InspectCommitRequest(
        commit=pfs_pb2.Commit(branch=commit.branch, id=commit.id), wait=pfs_pb2.CommitState.FINISHED
    ).SerializeToString()
    return lambda channel: channel.unary_unary("/pfs_v2.API/InspectCommit").future(request)


def _logs(server: Server, number: int) -> Callable[[grpc.Channel], Any]:
    client = server.client()
    client.create_repo("in")
    client.put_file_bytes(("in", "master"), "/file", b"content")
    client.create_pipeline(
        "talk",
        transform=pps_pb2.Transform(cmd=["sh"], stdin=[f"seq -f 'line %010.0f of a log of user code' {_LINES}"]),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/*")),
    )
    wait(client, "talk")
    request = pps_pb2.GetLogsRequest(pipeline=pps_pb2.Pipeline(name="talk")).SerializeToString()
    return lambda channel: _begun(channel, "pps_v2.API/GetLogs", request)


def _begun(channel: grpc.Channel, call: str, request: bytes) -> Any:
    """A stream of which the first reply was read."""
    replies: grpc.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(f"/{call}")
    stream = replies(request)
    next(stream)
    return stream


def _late(client: python_pachyderm.Client) -> float:
    """The 95th percentile of the seconds of small calls."""
    client.create_repo("probe", update=True)
    taken = []
    for _ in range(_CALLS):
        time.sleep(_PACE)
        begun = time.perf_counter()
        client.inspect_repo("probe")
        taken.append(time.perf_counter() - begun)
    return sorted(taken)[int(0.95 * len(taken))]
