"""Work for a call ends with the call: its client has gone, or its deadline has passed."""

import contextlib
import http.server
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from localpachd.api.calls import cancellation
from tests.conditions import until
from tests.http_servers import serving
from tests.servers import Pachd, StartPachd, Unique


@pytest.fixture
def ends() -> Iterator[Callable[..., Any]]:
    """Calls a method of a server of the test's own, which ends its call."""
    with ThreadPoolExecutor(2) as pool, contextlib.ExitStack() as held:

        def call(behaviour: Callable[[grpc.ServicerContext], None]) -> Any:
            def handle(request: Any, context: grpc.ServicerContext) -> Any:
                behaviour(context)
                return empty_pb2.Empty()

            server = grpc.server(pool)
            made = grpc.unary_unary_rpc_method_handler(
                handle, empty_pb2.Empty.FromString, empty_pb2.Empty.SerializeToString
            )
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Test", {"Call": made}),))
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            held.callback(lambda: server.stop(None).wait())
            channel = held.enter_context(grpc.insecure_channel(f"127.0.0.1:{port}"))
            return channel.unary_unary("/test.Test/Call", empty_pb2.Empty.SerializeToString).future(empty_pb2.Empty())

        yield call


def test_a_statement_that_would_never_end_is_interrupted(ends: Callable[..., Any]) -> None:
    conn = sqlite3.connect(":memory:", check_same_thread=False)
    started, ended = threading.Event(), threading.Event()
    found: list[str] = []

    def read(context: grpc.ServicerContext) -> None:
        started.set()
        try:
            with cancellation.interrupting(context, conn):
                conn.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
        except sqlite3.OperationalError as error:
            found.append(str(error))
        ended.set()

    call = ends(read)
    assert started.wait(30)
    call.cancel()
    assert ended.wait(30)
    assert found == ["interrupted"]
    assert conn.execute("SELECT 1").fetchone() == (1,)  # the connection serves others
    conn.close()


class _Endless(http.server.BaseHTTPRequestHandler):
    """Sends a file without an end; tells when the reader has gone."""

    sending = threading.Event()
    gone = threading.Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b"x" * 100_000)
                self.sending.set()
        self.gone.set()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endless() -> Iterator[str]:
    """The URL of a file without an end."""
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Endless)) as url:
        yield f"{url}/file"


def test_a_download_ends_with_its_call(localpachd: Pachd, unique: Unique, endless: str) -> None:
    name = unique("in")
    localpachd.client().create_repo(name)
    repo = pfs_pb2.Repo(name=name, type="user", project=pfs_pb2.Project(name="default"))
    commit = pfs_pb2.Commit(repo=repo, branch=pfs_pb2.Branch(repo=repo, name="master"))
    added = pfs_pb2.AddFile(path="/file", url=pfs_pb2.AddFile.URLSource(URL=endless))
    asked = [pfs_pb2.ModifyFileRequest(set_commit=commit), pfs_pb2.ModifyFileRequest(add_file=added)]
    with grpc.insecure_channel(localpachd.address.removeprefix("grpc://")) as channel:
        call = pfs_pb2_grpc.APIStub(channel).ModifyFile.future(iter(asked))
        assert _Endless.sending.wait(30)
        call.cancel()
        assert _Endless.gone.wait(30)


@pytest.mark.only_in_all
def test_a_server_that_is_told_to_stop_does_not_wait_for_calls_that_take_a_minute(
    start_pachd: StartPachd, tmp_path: Path
) -> None:
    server = start_pachd(tmp_path / "root")
    client = server.client()
    client.create_repo("in")
    # A template is a program; this one runs for a minute.
    inner = "std.foldl(function(sum, each) sum + each, std.range(1, 10000), 0)"
    template = f"std.foldl(function(sum, each) sum + {inner}, std.range(1, 100000), 0)"
    with grpc.insecure_channel(server.address.removeprefix("grpc://")) as channel:
        stub = pps_pb2_grpc.APIStub(channel)
        calls = [stub.RenderTemplate.future(pps_pb2.RenderTemplateRequest(template=template)) for _ in range(2)]
        children = Path(f"/proc/{server.process.pid}/task")
        until(lambda: any((each / "children").read_text().split() for each in children.iterdir()))
        server.process.terminate()
        assert server.process.wait(timeout=30) == 0  # 8 seconds, on a machine that is not busy
        for call in calls:
            call.cancel()
    again = start_pachd(tmp_path / "root").client()
    assert [each.repo.name for each in again.list_repo()] == ["in"]
