"""URLs in the calls of a server that was started without options: it reads and writes nothing of this machine."""

from __future__ import annotations

import http.server
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc
from python_pachyderm.proto.v2.transaction import transaction_pb2, transaction_pb2_grpc

from tests import servers
from tests.http_servers import serving
from tests.servers import Localpachd, StartPachd

OFF = "URLs of files are turned off on this server; its option --file-urls DIR allows those of a directory"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("default") / "root"


@pytest.fixture(scope="module")
def server(start_shared_pachd: StartPachd, root: Path) -> Localpachd:
    started = start_shared_pachd(root)
    started.client().create_secret("kept", {"word": "open sesame"})
    return started


@pytest.fixture
def client(server: Localpachd) -> Iterator[Client]:
    made = server.client()
    made.create_repo("in")
    made.put_file_bytes(("in", "master"), "/kept.json", b"forged")
    yield made
    made.delete_all_pipelines()
    made.delete_repo("in", force=True)


def head(repo: str = "in") -> pfs_pb2.Commit:
    named = pfs_pb2.Repo(name=repo, type="user", project=pfs_pb2.Project(name="default"))
    return pfs_pb2.Commit(repo=named, branch=pfs_pb2.Branch(repo=named, name="master"))


def refusal(call: object, *arguments: object) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as info:
        found = call(*arguments)  # type: ignore[operator]
        if not hasattr(found, "DESCRIPTOR") and found is not None:
            list(found)
    return info.value.code(), str(info.value.details())


def secrets(root: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in (root / "secrets").iterdir()}


def test_no_call_reads_a_file(client: Client, root: Path) -> None:
    for url in (
        "file:///etc/shadow",
        "local:///etc/shadow",
        f"file://{root}/secrets/kept.json",
        "file://localhost/etc",
    ):
        for recursive in (False, True):
            refused = refusal(
                lambda *how: client.put_file_url(("in", "master"), "/x", *how), url, False, None, recursive
            )
            assert refused == (grpc.StatusCode.FAILED_PRECONDITION, f"{url}: {OFF}")
    assert [each.file.path for each in client.list_file(("in", "master"), "/")] == ["/kept.json"]


def test_no_call_writes_a_file(client: Client, root: Path) -> None:
    url, before = f"file://{root}/secrets", secrets(root)
    files, pipelines = pfs_pb2_grpc.APIStub(client._channel), pps_pb2_grpc.APIStub(client._channel)
    file = pfs_pb2.File(commit=head(), path="/kept.json")
    egress = pps_pb2.Egress(object_storage=pfs_pb2.ObjectStorageEgress(url=url))
    pipeline = pps_pb2.CreatePipelineRequest(
        pipeline=pps_pb2.Pipeline(name="p", project=pfs_pb2.Project(name="default")),
        transform=pps_pb2.Transform(cmd=["true"]),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/")),
        egress=egress,
    )
    older = pps_pb2.CreatePipelineRequest()
    older.CopyFrom(pipeline)
    older.egress.Clear()
    older.egress.URL = url
    batch = transaction_pb2.BatchTransactionRequest(
        requests=[transaction_pb2.TransactionRequest(create_pipeline=pipeline)]
    )
    transactions = transaction_pb2_grpc.APIStub(client._channel)
    for call, request in (
        (files.GetFileTAR, pfs_pb2.GetFileRequest(file=file, URL=url)),
        (files.GetFile, pfs_pb2.GetFileRequest(file=file, URL=url)),
        (files.Egress, pfs_pb2.EgressRequest(commit=head(), object_storage=egress.object_storage)),
        (pipelines.CreatePipeline, pipeline),
        (pipelines.CreatePipeline, older),
        (transactions.BatchTransaction, batch),
    ):
        code, text = refusal(call, request)
        assert (code, OFF in text) == (grpc.StatusCode.FAILED_PRECONDITION, True), (call, text)
    assert secrets(root) == before


class _Page(http.server.BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


def test_no_call_asks_the_loopback(client: Client) -> None:
    _Page.asked = []
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)) as url:
        code, text = refusal(lambda: client.put_file_url(("in", "master"), "/x", f"{url}/x"))
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert "127.0.0.1 is not on the public internet; the server's option --url-network CIDR allows others" in text
        pipelines = pps_pb2_grpc.APIStub(client._channel)
        code, text = refusal(pipelines.RenderTemplate, pps_pb2.RenderTemplateRequest(template=f'import "{url}/x"'))
        assert "127.0.0.1 is not on the public internet" in text
        for endpoint in (f"minio://{url.removeprefix('http://')}/bucket", f"s3://bucket?endpoint={url}"):
            code, text = refusal(lambda at: client.put_file_url(("in", "master"), "/x", at), endpoint)
            assert "cannot be an endpoint" in text
    assert _Page.asked == []


def test_an_allowed_directory_does_not_open_the_root_in_it(start_pachd: StartPachd, tmp_path: Path) -> None:
    """Nor the file of the token, nor the key."""
    (tmp_path / "token").write_text("0123456789abcdef")
    (tmp_path / "f").write_text("shown")
    options = ("--file-urls", str(tmp_path), "--token-file", str(tmp_path / "token"))
    address = start_pachd(tmp_path / "root", *options).address
    client = Client(port=int(address.rpartition(":")[2]), auth_token="0123456789abcdef")
    client.create_repo("in")
    client.put_file_url(("in", "master"), "/f", f"file://{tmp_path}/f")
    assert client.get_file(("in", "master"), "/f").read() == b"shown"
    for path in ("root/pachd.sqlite", "root/../root/pachd.sqlite", "token"):
        refused = refusal(lambda at: client.put_file_url(("in", "master"), "/x", at), f"file://{tmp_path}/{path}")
        assert refused[0] is grpc.StatusCode.FAILED_PRECONDITION
        assert "belongs to the server" in refused[1]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--file-urls", "/no/such/directory"], "/no/such/directory is not a directory"),
        (["--url-network", "10.0.0.1/8"], "10.0.0.1/8 is not a network such as 10.1.0.0/16"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, options: list[str], text: str) -> None:
    tried = servers.run("--root", tmp_path / "root", "--port", 0, *options)
    assert (tried.returncode, text in tried.stderr, "Traceback" in tried.stderr) == (2, True, False)
