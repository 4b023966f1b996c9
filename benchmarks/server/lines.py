"""Reading a long log, beside the cost of gRPC alone."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import python_pachyderm
from python_pachyderm.proto.v2.pps import pps_pb2

from benchmarks.kit import servers
from benchmarks.kit.report import Result, Row, interleaved, line, timed
from benchmarks.server import bare

GOAL = 20_000
"""Lines a second, not decoded."""
_PIPELINE = "talks"
_TEXT = "line %.0f of the user code, about as long as the lines of a log are"
_REQUEST = pps_pb2.GetLogsRequest(pipeline=pps_pb2.Pipeline(name=_PIPELINE)).SerializeToString()


def measure_logs(number: int, rounds: int) -> Result:
    """The log of a datum that prints `number` lines, with python-pachyderm and with a client that decodes nothing;
    beside a bare server that sends the same messages, already encoded."""
    section = f"log of {number} lines"
    with servers.localpachd() as server, tempfile.TemporaryDirectory() as directory:
        _talk(server.client(), number)
        kept = Path(directory) / "messages"
        messages = list(_raw(server))
        bare.keep(kept, messages)
        server.forget_peak()
        with servers.bare("lines", str(kept)) as sending:
            both = (server, sending)
            seconds = interleaved(
                rounds,
                *(_reading(each, _decoded, len(messages)) for each in both),
                *(_reading(each, _raw, len(messages)) for each in both),
            )
            peaks = tuple(each.peak for each in both)
    rates = [len(messages) / each for each in seconds]
    shown = (section, section, f"{section}, undecoded", f"{section}, undecoded")
    rows = tuple(
        Row(what, name, each, rate, peak)
        for what, name, each, rate, peak in zip(shown, ("ours", "bound") * 2, seconds, rates, peaks * 2, strict=True)
    )
    lines = (
        line(shown[0], rates[0], rates[1], "lines/s", digits=0),
        line(shown[2], rates[2], rates[3], "lines/s", f"{GOAL:,} lines/s", rates[2] >= GOAL, 0),
    )
    return Result(rows, lines)


def _talk(client: python_pachyderm.Client, number: int) -> None:
    """Has a pipeline print that many lines."""
    client.create_repo("words")
    with client.commit("words", "master") as commit:
        client.put_file_bytes(commit, "/one", b"1")
    client.create_pipeline(
        _PIPELINE,
        transform=pps_pb2.Transform(cmd=["seq", "-f", _TEXT, str(number)]),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="words", glob="/*")),
    )
    client.wait_commit((_PIPELINE, "master"))


def _reading(
    server: servers.Server, read: Callable[[servers.Server], Iterator[object]], number: int
) -> Callable[[], float]:
    def work() -> None:
        found = sum(1 for _ in read(server))
        assert found == number, f"{found} of {number} lines were read"

    return lambda: timed(work)


def _decoded(server: servers.Server) -> Iterator[object]:
    found: Iterator[object] = server.client().get_pipeline_logs(_PIPELINE)
    return found


def _raw(server: servers.Server) -> Iterator[bytes]:
    return server.undecoded("pps_v2.API/GetLogs", _REQUEST)
