"""Files read from URLs and written to URLs."""

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from tests.parity.places import Place, Refusal, commit_of

of_this_machine = pytest.mark.only_localpachd("another server cannot reach web sites and directories of this machine")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A directory with a few files, on the web."""
    (tmp_path / "d").mkdir()
    (tmp_path / "one").write_text("1")
    (tmp_path / "d" / "two").write_text("2")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@of_this_machine
def test_files_from_the_web(client: Client, place: Place, site: str) -> None:
    repo = place.repo()
    client.put_file_url((repo, "master"), "/a", f"{site}/one")
    client.put_file_url((repo, "master"), "/a", f"{site}/d/two", append=True)
    assert place.read(repo, "/a") == "12"


@of_this_machine
def test_a_missing_page(client: Client, place: Place, site: str, refusal: Refusal) -> None:
    repo = place.repo()
    code, text = refusal(client.put_file_url, (repo, "master"), "/a", f"{site}/three")
    assert code is grpc.StatusCode.UNKNOWN
    assert text == f'error retrieving content from "{site}/three": 404 File not found'
    assert list(client.list_branch(repo)) == []


def test_an_unknown_scheme(client: Client, place: Place, refusal: Refusal) -> None:
    refused = refusal(client.put_file_url, (place.repo(), "master"), "/a", "gopher://there/a")
    assert refused == (grpc.StatusCode.UNKNOWN, "unrecognized object store: gopher")


@of_this_machine
def test_a_directory_there_and_back(
    client: Client, stub: pfs_pb2_grpc.APIStub, place: Place, site: str, tmp_path: Path
) -> None:
    repo = place.repo()
    client.put_file_url((repo, "master"), "/x", f"file://{tmp_path}", recursive=True)
    assert place.paths(repo) == ["/x/d/two", "/x/one"]
    file = pfs_pb2.File(commit=commit_of(repo, branch="master"), path="/x/d")
    assert list(stub.GetFileTAR(pfs_pb2.GetFileRequest(file=file, URL=f"file://{tmp_path}/back"))) == []
    assert [each.read_text() for each in (tmp_path / "back").rglob("*") if each.is_file()] == ["2"]
    assert (tmp_path / "back" / "x" / "d" / "two").read_text() == "2"


@of_this_machine
def test_a_missing_file_is_not_exported(
    stub: pfs_pb2_grpc.APIStub, place: Place, refusal: Refusal, tmp_path: Path
) -> None:
    repo = place.repo()
    commit_id = place.put(repo, a="1")
    file = pfs_pb2.File(commit=commit_of(repo, commit_id), path="/b")
    refused = refusal(stub.GetFileTAR, pfs_pb2.GetFileRequest(file=file, URL=f"file://{tmp_path}/none"))
    assert refused == (grpc.StatusCode.NOT_FOUND, f"file /b not found in repo default/{repo} at commit {commit_id}")
