"""The cost of counting calls: short calls to a localpachd with metrics, beside the same calls to one without."""

from collections.abc import Callable

from python_pachyderm.proto.v2.pfs import pfs_pb2

from benchmarks.kit import servers
from benchmarks.kit.report import Result, Row, interleaved, line, timed
from benchmarks.kit.servers import Server

MOST = 1.05
"""The goal for a call, beside one that is not counted."""


def measure_calls(number: int, rounds: int) -> Result:
    """`number` calls of InspectRepo, one after another, by a client that decodes nothing."""
    with servers.localpachd("--metrics-port", "0") as counted, servers.localpachd() as plain:
        ours, bound = interleaved(rounds, *(_calls(server, number) for server in (counted, plain)))
    section = f"{number} calls"
    return Result(
        (Row(section, "ours", ours, number / ours), Row(section, "bound", bound, number / bound)),
        (line(section, number / ours, number / bound, "calls/s", f"{MOST - 1:.0%} more", ours <= MOST * bound, 0),),
    )


def _calls(server: Server, number: int) -> Callable[[], float]:
    server.client().create_repo("counted")
    request = pfs_pb2.InspectRepoRequest(repo=pfs_pb2.Repo(name="counted", type="user")).SerializeToString()
    return lambda: timed(lambda: server.repeat("pfs_v2.API/InspectRepo", request, number))
