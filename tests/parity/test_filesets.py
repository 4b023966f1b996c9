"""File sets: created from a stream or a commit, read, composed, added to commits, and renewed."""

import io
import tarfile
from collections.abc import Callable, Iterable

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import BytesValue
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from tests.parity.places import ByVersion, Place, Refusal, commit_of

CreateFileSet = Callable[..., str]
"""Makes a file set from changes and returns its id."""

ReadFile = Callable[[str, str], str]
"""The text of a file of a file set: read(id, path)."""


def _add(path: str, data: str) -> pfs_pb2.ModifyFileRequest:
    return pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=path, raw=BytesValue(value=data.encode())))


def _delete(path: str) -> pfs_pb2.ModifyFileRequest:
    return pfs_pb2.ModifyFileRequest(delete_file=pfs_pb2.DeleteFile(path=path))


def _of(made: str) -> pfs_pb2.Commit:
    return commit_of("__filesets__", made)


def _file(made: str, path: str) -> pfs_pb2.File:
    return pfs_pb2.File(commit=_of(made), path=path)


@pytest.fixture
def create(stub: pfs_pb2_grpc.APIStub) -> CreateFileSet:
    """See CreateFileSet."""
    return lambda *changes: str(stub.CreateFileSet(iter(changes)).file_set_id)


@pytest.fixture
def read(stub: pfs_pb2_grpc.APIStub) -> ReadFile:
    """See ReadFile."""
    return lambda made, path: b"".join(
        each.value for each in stub.GetFile(pfs_pb2.GetFileRequest(file=_file(made, path)))
    ).decode()


def test_the_commit_of_a_file_set_has_always_been_finished(stub: pfs_pb2_grpc.APIStub, create: CreateFileSet) -> None:
    info = stub.InspectCommit(pfs_pb2.InspectCommitRequest(commit=_of(create(_add("/a", "1")))))
    assert info.description == "FileSet - Virtual Commit"
    assert info.HasField("finished")
    assert not info.finished.ByteSize()
    assert not info.HasField("started")
    assert not info.HasField("details")


def test_every_reader_reads_a_file_set(stub: pfs_pb2_grpc.APIStub, create: CreateFileSet, read: ReadFile) -> None:
    made = create(_add("/a", "1"), _add("/d/b", "2"), _add("/d/b", "3"), _add("/c", "x"), _delete("/c"))

    def paths(call: Callable[[Message], Iterable[pfs_pb2.FileInfo]], request: Message) -> list[str]:
        return [info.file.path for info in call(request)]

    assert paths(stub.ListFile, pfs_pb2.ListFileRequest(file=_file(made, "/"))) == ["/a", "/d/"]
    assert paths(stub.WalkFile, pfs_pb2.WalkFileRequest(file=_file(made, "/"))) == ["/", "/a", "/d/", "/d/b"]
    assert paths(stub.GlobFile, pfs_pb2.GlobFileRequest(commit=_of(made), pattern="/**b")) == ["/d/b"]
    info = stub.InspectFile(pfs_pb2.InspectFileRequest(file=_file(made, "/d/b")))
    assert (info.file.path, info.size_bytes, info.file.commit.id) == ("/d/b", 2, made)
    assert read(made, "/d/b") == "23"
    tar = b"".join(each.value for each in stub.GetFileTAR(pfs_pb2.GetFileRequest(file=_file(made, "/**"))))
    with tarfile.open(fileobj=io.BytesIO(tar)) as found:
        assert [each.name.lstrip("/") for each in found if each.isfile()] == ["a", "d/b"]
    other = create(_add("/a", "1"), _add("/d/b", "other"))
    pairs = stub.DiffFile(pfs_pb2.DiffFileRequest(new_file=_file(other, "/"), old_file=_file(made, "/")))
    assert [pair.new_file.file.path for pair in pairs] == ["/", "/d/", "/d/b"]
    assert stub.InspectCommit(pfs_pb2.InspectCommitRequest(commit=_of(made))).commit.id == made


def test_composing_puts_one_set_on_top_of_another(
    stub: pfs_pb2_grpc.APIStub, create: CreateFileSet, read: ReadFile, refusal: Refusal
) -> None:
    below = create(_add("/f", "1"), _add("/g", "2"), _add("/h", "3"))
    above = create(_add("/f", "+"), _delete("/g"), _add("/g", "new"), _delete("/h"))
    for compact in (False, True):
        request = pfs_pb2.ComposeFileSetRequest(file_set_ids=[below, above], ttl_seconds=60, compact=compact)
        made = stub.ComposeFileSet(request).file_set_id
        assert (read(made, "/f"), read(made, "/g")) == ("1+", "new")
        code, text = refusal(stub.GetFile, pfs_pb2.GetFileRequest(file=_file(made, "/h")))
        assert (code, text) == (
            grpc.StatusCode.NOT_FOUND, f"file /h not found in repo default/__filesets__ at commit {made}",
        )  # fmt: skip


def test_into_a_commit_and_out_of_it(
    stub: pfs_pb2_grpc.APIStub, client: Client, place: Place, create: CreateFileSet, read: ReadFile, refusal: Refusal
) -> None:
    repo = place.repo()
    place.put(repo, a="1", b="2")
    with client.commit(repo, "master") as commit:
        made = create(_add("/a", "+"), _delete("/b"), _add("/c", "3"))
        stub.AddFileSet(pfs_pb2.AddFileSetRequest(commit=commit_of(repo, commit.id), file_set_id=made))
        assert place.paths(repo, commit.id) == ["/a", "/c"]
    assert (place.read(repo, "/a"), place.read(repo, "/c")) == ("1+", "3")
    request = pfs_pb2.AddFileSetRequest(commit=commit_of(repo, commit.id), file_set_id=made)
    assert refusal(stub.AddFileSet, request) == (
        grpc.StatusCode.UNKNOWN, f"commit default/{repo}@{commit.id} has already finished",
    )  # fmt: skip
    got = stub.GetFileSet(pfs_pb2.GetFileSetRequest(commit=commit_of(repo, branch="master"))).file_set_id
    assert (read(got, "/a"), read(got, "/c")) == ("1+", "3")
    # It keeps its content when the branch moves, and its files can be copied.
    place.put(repo, a=None)
    assert read(got, "/a") == "1+"
    copy = pfs_pb2.CopyFile(dst="/copied", src=_file(got, "/a"))
    assert read(create(pfs_pb2.ModifyFileRequest(copy_file=copy)), "/copied") == "1+"


def test_shards_are_ranges_to_read_by(stub: pfs_pb2_grpc.APIStub, create: CreateFileSet) -> None:
    made = create(*(_add(f"/{place}", "x") for place in range(5)))
    (shard,) = stub.ShardFileSet(pfs_pb2.ShardFileSetRequest(file_set_id=made)).shards
    assert (shard.lower, shard.upper) == ("", "")
    part = pfs_pb2.PathRange(lower="/1", upper="/3")
    found = stub.GlobFile(pfs_pb2.GlobFileRequest(commit=_of(made), pattern="/*", path_range=part))
    assert [info.file.path for info in found] == ["/1", "/2"]


def test_a_lifetime_is_renewed_within_limits(
    stub: pfs_pb2_grpc.APIStub, create: CreateFileSet, refusal: Refusal
) -> None:
    made = create(_add("/f", "1"))
    stub.RenewFileSet(pfs_pb2.RenewFileSetRequest(file_set_id=made, ttl_seconds=1800))
    for seconds, text in (
        (0, "ttl (0) must be at least one second"),
        (1801, "ttl (1801000000000) exceeds max ttl (1800000000000)"),
    ):
        request = pfs_pb2.RenewFileSetRequest(file_set_id=made, ttl_seconds=seconds)
        assert refusal(stub.RenewFileSet, request) == (grpc.StatusCode.UNKNOWN, text)


def test_invalid_requests_are_refused(
    stub: pfs_pb2_grpc.APIStub,
    client: Client,
    place: Place,
    create: CreateFileSet,
    refusal: Refusal,
    by_version: ByVersion,
) -> None:
    kind = by_version("ID", "Token")
    short = f"parsing fileset.{kind}: too short to be {kind} len=5"
    for call, request in (
        (stub.RenewFileSet, pfs_pb2.RenewFileSetRequest(file_set_id="ghost", ttl_seconds=60)),
        (stub.ShardFileSet, pfs_pb2.ShardFileSetRequest(file_set_id="ghost")),
        (stub.ComposeFileSet, pfs_pb2.ComposeFileSetRequest(file_set_ids=["ghost"], ttl_seconds=60)),
        (stub.ListFile, pfs_pb2.ListFileRequest(file=_file("ghost", "/"))),
    ):
        assert refusal(call, request) == (grpc.StatusCode.UNKNOWN, short)
    request = pfs_pb2.ShardFileSetRequest(file_set_id="0" * 32)
    assert refusal(stub.ShardFileSet, request)[1].startswith("path does not exist")
    ghost = pfs_pb2.GetFileSetRequest(commit=commit_of(place.unique("ghost"), branch="master"))
    assert refusal(stub.GetFileSet, ghost)[0] is grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.RpcError, match="cannot set commit"):
        create(pfs_pb2.ModifyFileRequest(set_commit=_of("0" * 32)))
    with pytest.raises(grpc.RpcError, match="is a reserved name"):
        client.create_repo("__filesets__")
