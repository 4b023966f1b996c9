"""Writing files, in all the forms that a stream of changes takes."""

import io
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.wrappers_pb2 import BytesValue
from hypothesis import HealthCheck, given, settings, strategies as st
from python_pachyderm import Client
from python_pachyderm.mixin.pfs import ModifyFileClient
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from tests.example_counts import examples
from tests.parity.places import NOBODY, NOT_FOUND, UNKNOWN, Place, Refusal, commit_of, content, finished


def added(path: str, data: bytes | None, datum: str = "") -> pfs_pb2.ModifyFileRequest:
    raw = BytesValue(value=data) if data is not None else None
    return pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=path, datum=datum, raw=raw))


def tree(client: Client, repo: str, reference: str = "master") -> dict[str, bytes]:
    found = {}
    for info in client.walk_file((repo, reference), "/"):
        if info.file_type == pfs_pb2.FILE:
            found[info.file.path] = content(client, (repo, reference), info.file.path)
    return found


def test_adding_appends_and_putting_replaces(client: Client, place: Place) -> None:
    repo = place.repo()
    client.put_file_bytes((repo, "master"), "/f", b"one")
    client.put_file_bytes((repo, "master"), "/f", b"two", append=True)
    assert tree(client, repo) == {"/f": b"onetwo"}
    client.put_file_bytes((repo, "master"), "/f", b"three")
    assert tree(client, repo) == {"/f": b"three"}
    with place.stream(repo) as files:
        files.put_file_from_bytes("/f", b"4", append=True)
        files.put_file_from_bytes("/g", b"5")
        files.put_file_from_bytes("/f", b"6", append=True)
    assert tree(client, repo) == {"/f": b"three46", "/g": b"5"}


def test_a_write_to_a_finished_branch_is_a_commit_of_its_own(client: Client, place: Place) -> None:
    repo = place.repo()
    client.put_file_bytes((repo, "master"), "/a", b"1")
    client.put_file_bytes((repo, "master"), "/b", b"2")
    first, second = reversed(list(client.list_commit(repo)))
    assert second.parent_commit.id == first.commit.id
    assert second.HasField("finishing")
    assert tree(client, repo, first.commit.id) == {"/a": b"1"}
    assert tree(client, repo) == {"/a": b"1", "/b": b"2"}


def test_an_open_commit_takes_many_writes_and_stays_open(client: Client, place: Place) -> None:
    repo = place.repo()
    with client.commit(repo, "master") as commit:
        for number in range(40):
            client.put_file_bytes(commit, f"/{number:02}", str(number).encode())
        client.put_file_bytes((repo, "master"), "/00", b"by branch", append=True)
        client.delete_file(commit, "/39")
        assert len(tree(client, repo)) == 39
    assert len(list(client.list_commit(repo))) == 1
    assert tree(client, repo)["/00"] == b"0by branch"


def test_concurrent_writers_lose_nothing(client: Client, place: Place) -> None:
    repo = place.repo()
    with client.commit(repo, "master") as commit:

        def write(number: int) -> None:
            client.put_file_bytes(commit, "/all", b"%d\n" % number, append=True)
            client.put_file_bytes(commit, f"/{number}", b"x")

        writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for each in writers:
            each.start()
        for each in writers:
            each.join(timeout=60)
    found = tree(client, repo)
    assert sorted(found["/all"].split()) == sorted(b"%d" % number for number in range(8))
    assert len(found) == 9


def test_content_comes_from_files_objects_and_bytes(client: Client, place: Place, tmp_path: Path) -> None:
    repo = place.repo()
    lines = b"".join(b"line %d\n" % number for number in range(2000))
    (tmp_path / "local").write_bytes(lines)
    with place.stream(repo) as files:
        files.put_file_from_filepath("/from/file", str(tmp_path / "local"))
        files.put_file_from_fileobj("/from/object", io.BytesIO(lines))
        files.put_file_from_bytes("/from/bytes", lines)
        files.put_file_from_bytes("/from/nothing", b"")
    assert tree(client, repo) == {
        "/from/file": lines, "/from/object": lines, "/from/bytes": lines, "/from/nothing": b"",
    }  # fmt: skip


def test_big_files_keep_every_byte(client: Client, place: Place) -> None:
    repo = place.repo()
    data = random.Random(1).randbytes(22 << 20)  # more than one message and one chunk
    client.put_file_bytes((repo, "master"), "/big", data)
    client.put_file_bytes((repo, "master"), "/big", b"tail", append=True)
    with client.get_file((repo, "master"), "/big") as file:
        assert file.read() == data + b"tail"
    (info,) = client.list_file((repo, "master"), "/big")
    assert info.size_bytes == len(data) + 4


def test_deleting_is_exact_or_recursive(client: Client, place: Place) -> None:
    repo = place.repo()
    place.put(repo, a="1", d_x="2", d_e_y="3", dd="4")
    client.delete_file((repo, "master"), "/d")  # without a slash it names a file, and there is no such file
    client.delete_file((repo, "master"), "/nothing")
    finished(client, repo)
    assert list(tree(client, repo)) == ["/a", "/d/e/y", "/d/x", "/dd"]
    client.delete_file((repo, "master"), "/d/")
    client.delete_file((repo, "master"), "/a")
    finished(client, repo)
    assert list(tree(client, repo)) == ["/dd"]
    with place.stream(repo) as files:
        files.put_file_from_bytes("/d/z", b"5")
        files.delete_file("/")
        files.put_file_from_bytes("/d/w", b"6")
    assert tree(client, repo) == {"/d/w": b"6"}


def test_copies_of_files_and_directories(client: Client, place: Place) -> None:
    repo, other = place.repo(), place.repo("other")
    place.put(repo, f="1", d_x="2", d_e_y="3", dx="4")
    head = commit_of(repo, branch="master")
    client.copy_file(head, "/d", (other, "master"), "/copied")
    client.copy_file(head, "/f", (other, "master"), "/copied/x", append=True)
    client.copy_file(head, "/f", (other, "master"), "/copied/e/y")
    assert tree(client, other) == {"/copied/e/y": b"1", "/copied/x": b"21"}
    client.copy_file(head, "/", (other, "master"), "/all")
    assert len(tree(client, other)) == 6
    client.copy_file(head, "/nothing", (other, "master"), "/no")
    assert len(tree(client, other)) == 6


def test_a_copy_from_a_branch_to_itself_reads_its_head_even_if_that_failed(client: Client, place: Place) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    failed = client.start_commit(repo, "master")
    client.put_file_bytes(failed, "/b", b"2")
    client.finish_commit(failed, error="half written")
    client.copy_file(commit_of(repo, branch="master"), "/b", (repo, "master"), "/c")
    finished(client, repo)
    assert tree(client, repo) == {"/a": b"1", "/c": b"2"}


@pytest.mark.crashes_pachd("a source whose commit has its repo only within its branch")
def test_the_source_of_a_copy_as_the_client_sends_it(client: Client, place: Place) -> None:
    repo = place.repo()
    place.put(repo, a="1")
    client.copy_file((repo, "master"), "/a", (repo, "master"), "/b")
    assert tree(client, repo) == {"/a": b"1", "/b": b"1"}


@pytest.mark.crashes_pachd("a stream of changes to a commit that names no branch, not even one without a name")
def test_changes_to_a_commit_named_without_a_branch(client: Client, place: Place, stub: pfs_pb2_grpc.APIStub) -> None:
    repo = place.repo()
    with client.commit(repo, "master") as commit:
        opening = pfs_pb2.ModifyFileRequest(set_commit=pfs_pb2.Commit(repo=commit.repo, id=commit.id))
        stub.ModifyFile(iter((opening, added("/a", b"1"))))
    assert tree(client, repo) == {"/a": b"1"}


def test_a_copy_reads_the_content_before_the_stream(client: Client, place: Place) -> None:
    repo = place.repo()
    place.put(repo, f="old")
    with place.stream(repo) as files:
        files.put_file_from_bytes("/f", b"new")
        files.copy_file(commit_of(repo, "master^0"), "/f", "/g")
    assert tree(client, repo) == {"/f": b"new", "/g": b"old"}


def test_deleting_by_tag_leaves_other_tags(client: Client, place: Place) -> None:
    repo = place.repo()
    with place.stream(repo) as files:
        files.put_file_from_bytes("/a", b"1", datum="one")
        files.put_file_from_bytes("/b", b"2", datum="two")
        files.put_file_from_bytes("/c", b"3")
    client.delete_file((repo, "master"), "/a")
    finished(client, repo)
    assert list(tree(client, repo)) == ["/a", "/b", "/c"]
    with place.stream(repo) as files:
        files.delete_file("/", datum="one")
    assert list(tree(client, repo)) == ["/b", "/c"]


def test_a_path_is_cleaned(client: Client, place: Place) -> None:
    repo = place.repo()
    for path in ("a", "//b//c", "/d/"):
        client.put_file_bytes((repo, "master"), path, b"1")
        finished(client, repo)
    assert list(tree(client, repo)) == ["/a", "/b/c", "/d"]


def test_invalid_paths(client: Client, place: Place, refusal: Refusal) -> None:
    repo = place.repo()
    for path, reason in {
        "": "only printable ASCII characters allowed",
        "/ä": "only printable ASCII characters allowed",
        "/a\tb": "only printable ASCII characters allowed",
        "/a*": "globbing character (*) not allowed in path",
        "/a[b]": "globbing character ([) not allowed in path",
        "/a+b": "globbing character (+) not allowed in path",
        "/a@b": "globbing character (@) not allowed in path",
        "/a/../b": "relative file paths are not allowed",
        "./a": "relative file paths are not allowed",
    }.items():
        text = f"path ({path}) invalid: {reason}"
        assert refusal(client.put_file_bytes, (repo, "master"), path, b"1", append=True) == (UNKNOWN, text)
        assert refusal(client.delete_file, (repo, "master"), path) == (UNKNOWN, text)
    assert list(client.list_branch(repo)) == []


def test_unusual_but_valid_paths(client: Client, place: Place) -> None:
    repo = place.repo()
    paths = ["/a b", "/a'b\"c", "/a#b", "/a~b", "/a;b&c|d", "/...", "/a:b=c,d", "/$HOME", "/-r"]
    with place.stream(repo) as files:
        for path in paths:
            files.put_file_from_bytes(path, path.encode())
    assert tree(client, repo) == {path: path.encode() for path in paths}


def test_invalid_streams(place: Place, stub: pfs_pb2_grpc.APIStub, refusal: Refusal) -> None:
    repo = place.repo()
    opening = pfs_pb2.ModifyFileRequest(set_commit=commit_of(repo, branch="master"))

    def send(*requests: pfs_pb2.ModifyFileRequest) -> tuple[grpc.StatusCode, str]:
        return refusal(stub.ModifyFile, iter(requests))

    assert send(added("/a", b"1")) == (UNKNOWN, "first message must be a commit")
    assert send(opening, added("/a", b"1"), opening) == (UNKNOWN, "cannot set commit")
    assert send(opening, pfs_pb2.ModifyFileRequest()) == (UNKNOWN, "unrecognized message type")


def test_a_message_without_a_source_makes_an_empty_file(
    client: Client, place: Place, stub: pfs_pb2_grpc.APIStub
) -> None:
    repo = place.repo()
    stub.ModifyFile(
        iter((pfs_pb2.ModifyFileRequest(set_commit=commit_of(repo, branch="master")), added("/empty", None)))
    )
    (info,) = client.list_file((repo, "master"), "/")
    assert (info.file.path, info.size_bytes, info.file_type) == ("/empty", 0, pfs_pb2.FILE)


def test_a_failing_stream_changes_nothing(client: Client, place: Place, refusal: Refusal) -> None:
    repo = place.repo()
    commit = place.put(repo, a="1")

    def write() -> None:
        with place.stream(repo) as files:
            files.put_file_from_bytes("/b", b"2")
            files.delete_file("/a")
            files.put_file_from_bytes("/c*", b"3")

    assert refusal(write)[0] is UNKNOWN
    assert tree(client, repo) == {"/a": b"1"}
    assert [info.commit.id for info in client.list_commit(repo)] == [commit]


def test_missing_targets(client: Client, place: Place, refusal: Refusal) -> None:
    repo = place.repo()
    assert refusal(client.put_file_bytes, ("ghost", "master"), "/a", b"1") == (
        NOT_FOUND,
        "repo default/ghost not found",
    )
    assert refusal(client.put_file_bytes, (repo, NOBODY), "/a", b"1") == (
        NOT_FOUND,
        f"commit default/{repo}@{NOBODY} not found",
    )
    client.put_file_bytes((repo, "fresh"), "/a", b"1")
    assert tree(client, repo, "fresh") == {"/a": b"1"}, "a missing branch is created"


_PATHS = st.sampled_from(["/a", "/a-b", "/b", "/d/a", "/d/b", "/d/e/f", "/d-x/y"])
_STEPS = st.one_of(
    st.tuples(st.sampled_from(["append", "put"]), _PATHS, st.binary(max_size=6)),
    st.tuples(st.just("delete"), st.one_of(_PATHS, st.sampled_from(["/", "/d/", "/d/e/", "/d"])), st.just(b"")),
    st.tuples(st.just("copy"), _PATHS, st.sampled_from([b"/a", b"/d", b"/d/a"])),
)


def apply(files: dict[str, bytes], before: dict[str, bytes], kind: str, path: str, data: bytes) -> None:
    if kind == "copy":
        source = data.decode()
        for each in [each for each in before if each == source or each.startswith(f"{source}/")]:
            files[path + each.removeprefix(source)] = before[each]
    elif kind == "delete":
        for each in [each for each in files if each == path or (path.endswith("/") and each.startswith(path))]:
            del files[each]
    else:
        files[path] = (files.get(path, b"") if kind == "append" else b"") + data


def send(files: ModifyFileClient, head: tuple[str, str], kind: str, path: str, data: bytes) -> None:
    if kind == "copy":
        files.copy_file(head, data.decode(), path)
    elif kind == "delete":
        files.delete_file(path)
    else:
        files.put_file_from_bytes(path, data, append=kind == "append")


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(streams=st.lists(st.lists(_STEPS, min_size=1, max_size=5), min_size=1, max_size=4))
def test_streams_do_what_a_dictionary_would(
    client: Client, place: Place, streams: list[list[tuple[str, str, bytes]]]
) -> None:
    repo = place.repo()
    head = repo, place.put(repo, a="1")
    files = {"/a": b"1"}
    for stream in streams:
        expected = dict(files)
        for step in stream:
            apply(expected, files, *step)
        if any(other.startswith(f"{path}/") for path in expected for other in expected):
            continue  # a file where a directory is fails the commit
        with place.stream(repo) as sent:
            for step in stream:
                send(sent, head, *step)
        files = expected
        assert tree(client, repo) == files
        (info,) = client.inspect_commit((repo, "master"))
        assert info.details.size_bytes == sum(map(len, files.values()))
        head = repo, info.commit.id


@pytest.fixture
def many(client: Client, place: Place) -> Iterator[str]:
    """A repo with 2,000 files, put as one stream."""
    repo = place.repo("many")
    with place.stream(repo) as files:
        for number in range(2000):
            files.put_file_from_bytes(f"/{number % 7}/{number:04}", b"%d" % number)
    yield repo


def test_thousands_of_files_in_one_stream(client: Client, many: str) -> None:
    infos = list(client.walk_file((many, "master"), "/"))
    assert sum(info.file_type == pfs_pb2.FILE for info in infos) == 2000
    assert infos[0].file.path == "/"
    assert infos[0].size_bytes == sum(len(str(number)) for number in range(2000))
    assert len(list(client.list_commit(many))) == 1
