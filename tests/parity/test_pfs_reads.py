"""Reading files: one, some, all; inspected, listed, walked, matched, packed, compared."""

import io
import tarfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from tests.parity.places import NOT_FOUND, UNKNOWN, Place, Refusal, commit_of, delete_marked


@pytest.fixture(scope="module")
def repo(client: Client) -> Iterator[str]:
    """A repo with a small tree, for all that only read."""
    mark = f"-{uuid.uuid4().hex}-"
    shared = Place(client, lambda stem: f"{stem}{mark}")
    name = shared.repo("tree")
    shared.put(name, a="1", b="22", d_x="333", d_e_y="4444", d_e_z="5", f_y="6")
    yield name
    delete_marked(client, mark)


def paths(infos: Iterable[pfs_pb2.FileInfo]) -> list[str]:
    return [info.file.path for info in infos]


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def file_hash(data: bytes) -> bytes:
    return digest(digest(data))


def message(repo: str, path: str, **fields: str) -> pfs_pb2.File:
    return pfs_pb2.File(commit=commit_of(repo, branch="master"), path=path, **fields)


def test_a_file_and_a_directory_described(client: Client, repo: str) -> None:
    file = client.inspect_file((repo, "master"), "/d/x")
    head = client.inspect_branch(repo, "master").head.id
    assert (file.file.path, file.file_type, file.size_bytes, file.file.datum) == ("/d/x", pfs_pb2.FILE, 3, "default")
    assert (file.file.commit.id, file.file.commit.branch.name) == (head, "master")
    assert file.committed.seconds > 0
    assert file.hash == file_hash(b"333")
    for path in ("/d", "/d/", "d"):
        directory = client.inspect_file((repo, "master"), path)
        assert (directory.file.path, directory.file_type, directory.size_bytes) == ("/d/", pfs_pb2.DIR, 8)
    below = digest(file_hash(b"4444") + file_hash(b"5"))
    assert directory.hash == digest(below + file_hash(b"333"))


def test_an_open_commit_has_no_time_of_commitment(client: Client, place: Place) -> None:
    name = place.repo()
    with client.commit(name, "master") as commit:
        client.put_file_bytes(commit, "/a", b"1")
        assert not client.inspect_file(commit, "/a").HasField("committed")


def test_a_list_holds_the_immediate_entries_in_path_order(client: Client, repo: str) -> None:
    assert paths(client.list_file((repo, "master"), "/")) == ["/a", "/b", "/d/", "/f/"]
    assert paths(client.list_file((repo, "master"), "/d")) == ["/d/e/", "/d/x"]
    assert paths(client.list_file((repo, "master"), "/d/")) == ["/d/e/", "/d/x"]
    assert paths(client.list_file((repo, "master"), "/a")) == ["/a"], "a file lists itself"
    assert paths(client.list_file((repo, "master"), "/nothing")) == []


def test_a_directory_sorts_as_its_path_with_the_slash(client: Client, place: Place) -> None:
    name = place.repo()
    with client.modify_file_client((name, "master")) as files:
        for path in ("/a/x", "/a-b", "/a.b", "/a0"):
            files.put_file_from_bytes(path, b"1")
    assert paths(client.list_file((name, "master"), "/")) == ["/a-b", "/a.b", "/a/", "/a0"]


def test_a_walk_holds_the_node_and_everything_below(client: Client, repo: str) -> None:
    assert paths(client.walk_file((repo, "master"), "/d")) == ["/d/", "/d/e/", "/d/e/y", "/d/e/z", "/d/x"]
    assert paths(client.walk_file((repo, "master"), "/a")) == ["/a"]
    assert paths(client.walk_file((repo, "master"), "/"))[:3] == ["/", "/a", "/b"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/", ["/"]),
        ("/*", ["/a", "/b", "/d/", "/f/"]),
        ("*", ["/a", "/b", "/d/", "/f/"]),
        ("/*/*", ["/d/e/", "/d/x", "/f/y"]),
        ("/d/**", ["/d/e/", "/d/e/y", "/d/e/z", "/d/x"]),
        ("**y", ["/d/e/y", "/f/y"]),
        ("/[ab]", ["/a", "/b"]),
        ("/[!ab]", ["/d/", "/f/"]),
        ("/{a,f/?}", ["/a", "/f/y"]),
        ("/@(a|d)", ["/a", "/d/"]),
        ("/d/e/", ["/d/e/"]),
        ("/nothing*", []),
    ],
)
def test_globs(client: Client, repo: str, pattern: str, found: list[str]) -> None:
    assert paths(client.glob_file((repo, "master"), pattern)) == found


def test_an_empty_commit_has_no_root(client: Client, place: Place, refusal: Refusal) -> None:
    name = place.repo()
    commit = place.put(name)
    assert paths(client.list_file((name, "master"), "/")) == []
    assert paths(client.walk_file((name, "master"), "/")) == []
    assert paths(client.glob_file((name, "master"), "/")) == []
    code, text = refusal(client.inspect_file, (name, None, commit), "/")
    assert (code, text) == (NOT_FOUND, f"file / not found in repo default/{name} at commit {commit}")


def test_one_file_is_read_from_anywhere(client: Client, place: Place) -> None:
    name = place.repo()
    data = bytes(range(256)) * 4000
    client.put_file_bytes((name, "master"), "/f", data)
    for offset in (0, 1, 65_536, len(data) - 1):
        with client.get_file((name, "master"), "/f", offset=offset) as file:
            assert file.read() == data[offset:]
    with client.get_file((name, "master"), "/f") as file:
        assert file.read(10) == data[:10]
        assert file.read() == data[10:]


@pytest.mark.only_localpachd("Pachyderm sends no message for an empty file, on which this client fails")
def test_the_client_reads_an_empty_file(client: Client, place: Place) -> None:
    name = place.repo()
    place.put(name, a="")
    with client.get_file((name, "master"), "/a") as file:
        assert file.read() == b""


def test_a_glob_may_match_the_one_file(client: Client, repo: str) -> None:
    with client.get_file((repo, "master"), "/d/[wx]") as file:
        assert file.read() == b"333"


@pytest.mark.parametrize("path", ["/d", "/", "/d*"])
def test_a_directory_is_not_read_as_a_file(client: Client, repo: str, refusal: Refusal, path: str) -> None:
    text = "cannot get directory or non-regular file. Use GetFileTAR instead"
    assert refusal(client.get_file, (repo, "master"), path) == (UNKNOWN, text)


def test_many_files_are_not_read_as_one(client: Client, repo: str, refusal: Refusal) -> None:
    assert refusal(client.get_file, (repo, "master"), "/d/e/*") == (
        UNKNOWN,
        "matched multiple files. Use GetFileTAR instead",
    )


def members(archive: tarfile.TarFile) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for each in archive:
        content = archive.extractfile(each)
        found[each.name] = content.read() if content else None
    return found


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/d/e", {"d/e": None, "d/e/y": b"4444", "d/e/z": b"5"}),
        ("/f/y", {"f/y": b"6"}),
        ("/{a,f}", {"a": b"1", "f": None, "f/y": b"6"}),
        ("/**y", {"d/e/y": b"4444", "f/y": b"6"}),
        ("/d", {"d": None, "d/e": None, "d/e/y": b"4444", "d/e/z": b"5", "d/x": b"333"}),
    ],
)
def test_archives_hold_the_matches_and_everything_below(
    client: Client, repo: str, path: str, found: dict[str, bytes | None]
) -> None:
    assert members(client.get_file_tar((repo, "master"), path)) == found


def test_archives_name_their_members_absolutely(repo: str, stub: pfs_pb2_grpc.APIStub) -> None:
    stream = stub.GetFileTAR(pfs_pb2.GetFileRequest(file=message(repo, "/f")))
    with tarfile.open(fileobj=io.BytesIO(b"".join(each.value for each in stream))) as archive:
        directory, file = archive.getmembers()
    assert (directory.name, directory.isdir(), file.name, file.size) == ("/f", True, "/f/y", 1)
    assert (file.mode, file.mtime) == (0, 0)


def test_missing_files(client: Client, repo: str, refusal: Refusal) -> None:
    commit = client.inspect_branch(repo, "master").head.id
    target = (repo, None, commit)
    text = f"file /nothing not found in repo default/{repo} at commit {commit}"
    assert refusal(client.inspect_file, target, "/nothing") == (NOT_FOUND, text)
    assert refusal(client.get_file, target, "/nothing") == (NOT_FOUND, text)
    assert refusal(client.get_file_tar, target, "/nothing") == (NOT_FOUND, text)
    assert refusal(client.walk_file, target, "/nothing/") == (
        NOT_FOUND,
        f"commit/{commit} does not contain item: (/nothing)",
    )
    for call in (client.list_file, client.walk_file, client.inspect_file, client.get_file, client.glob_file):
        assert refusal(call, (repo, "ghost"), "/") == (NOT_FOUND, f'branch "ghost" not found in repo default/{repo}')


def test_pages_of_lists_and_walks(client: Client, place: Place) -> None:
    name = place.repo()
    with client.modify_file_client((name, "master")) as files:
        for path in ("/a", "/b", "/c/x", "/c/y", "/d", "/e"):
            files.put_file_from_bytes(path, b"1")
    target = (name, "master")

    def page(call: Callable[..., Iterable[pfs_pb2.FileInfo]], **options: object) -> list[str]:
        return paths(call(target, "/", **options))

    def marker(path: str) -> pfs_pb2.File:
        return message(name, path)

    assert page(client.list_file, number=2) == ["/a", "/b"]
    assert page(client.list_file, number=2, pagination_marker=marker("/b")) == ["/c/", "/d"]
    assert page(client.list_file, number=2, pagination_marker=marker("/c/")) == ["/d", "/e"]
    assert page(client.list_file, number=9, pagination_marker=marker("/e")) == []
    assert page(client.list_file, number=2, reverse=True) == ["/e", "/d"]
    assert page(client.list_file, number=2, reverse=True, pagination_marker=marker("/d")) == ["/c/", "/b"]
    assert page(client.walk_file, number=3) == ["/", "/a", "/b"]
    assert page(client.walk_file, number=3, pagination_marker=marker("/b")) == ["/c/", "/c/x", "/c/y"]
    assert page(client.walk_file, number=2, reverse=True, pagination_marker=marker("/c/y")) == ["/c/x", "/c/"]


def test_a_negative_number_means_all(client: Client, repo: str) -> None:
    assert paths(client.list_file((repo, "master"), "/", number=-1)) == ["/a", "/b", "/d/", "/f/"]
    assert len(paths(client.walk_file((repo, "master"), "/", number=-1))) == 10
    assert len(list(client.list_commit(repo, number=-1))) == 1


@pytest.mark.crashes_pachd("a negative number of files in reverse order, and on a negative offset")
def test_a_negative_number_of_files_has_no_reverse_order(client: Client, repo: str, refusal: Refusal) -> None:
    for call in (client.list_file, client.walk_file):
        refused = refusal(call, (repo, "master"), "/", number=-1, reverse=True)
        assert refused == (UNKNOWN, "number must be > 0 when reverse is true")
    with client.get_file((repo, "master"), "/d/x", offset=-1) as file:
        assert file.read() == b"333"


def test_invalid_pages(client: Client, repo: str, refusal: Refusal) -> None:
    for call in (client.list_file, client.walk_file):
        assert refusal(call, (repo, "master"), "/", reverse=True) == (
            UNKNOWN,
            "number must be > 0 when reverse is true",
        )
        assert refusal(call, (repo, "master"), "/", number=100_001) == (
            UNKNOWN,
            "cannot return more than 100000 files at a time",
        )


def test_path_ranges_of_globs_and_archives(repo: str, stub: pfs_pb2_grpc.APIStub) -> None:
    def found(lower: str, upper: str) -> list[str]:
        limits = pfs_pb2.PathRange(lower=lower, upper=upper)
        request = pfs_pb2.GlobFileRequest(commit=message(repo, "").commit, pattern="/*", path_range=limits)
        return paths(stub.GlobFile(request))

    assert found("/b", "/f/") == ["/b", "/d/"]
    assert found("", "/b") == ["/a"]
    assert found("/d/e", "") == ["/f/"]
    limits = pfs_pb2.PathRange(lower="/d/e/z", upper="/f/")
    stream = stub.GetFileTAR(pfs_pb2.GetFileRequest(file=message(repo, "/**"), path_range=limits))
    with tarfile.open(fileobj=io.BytesIO(b"".join(each.value for each in stream))) as archive:
        assert archive.getnames() == ["/d/e/z", "/d/x"]


def test_a_datum_tag_restricts_what_is_read(client: Client, place: Place, stub: pfs_pb2_grpc.APIStub) -> None:
    name = place.repo()
    with client.modify_file_client((name, "master")) as files:
        files.put_file_from_bytes("/a", b"1", datum="one")
        files.put_file_from_bytes("/b", b"22", datum="two")
    listed = stub.ListFile(pfs_pb2.ListFileRequest(file=message(name, "/", datum="two")))
    assert [(info.file.path, info.file.datum) for info in listed] == [("/b", "two")]
    assert stub.InspectFile(pfs_pb2.InspectFileRequest(file=message(name, "/", datum="two"))).size_bytes == 2


def differences(stream: Iterable[pfs_pb2.DiffFileResponse]) -> list[tuple[str, str]]:
    return [(each.new_file.file.path, each.old_file.file.path) for each in stream]


def test_differences_to_the_parent_and_to_anything(client: Client, place: Place) -> None:
    repo = place.repo("tree")
    place.put(repo, a="1", b="22", d_x="333", d_e_y="4444", d_e_z="5", f_y="6")
    place.put(repo, a="other", b=None, c="3")
    assert differences(client.diff_file((repo, "master"), "/")) == [
        ("/", "/"), ("/a", "/a"), ("", "/b"), ("/c", ""),
    ]  # fmt: skip
    assert differences(client.diff_file((repo, "master"), "/a")) == [("/a", "/a")]
    assert differences(client.diff_file((repo, "master"), "/d")) == []
    assert differences(client.diff_file((repo, "master"), "/", (repo, "master"), "/")) == []
    assert differences(client.diff_file((repo, "master"), "/d/e", (repo, "master"), "/f")) == [
        ("/d/e/", ""), ("/d/e/y", ""), ("/d/e/z", ""), ("", "/f/"), ("", "/f/y"),
    ]  # fmt: skip


def test_the_first_commit_differs_from_nothing(client: Client, place: Place) -> None:
    name = place.repo()
    place.put(name, a="1")
    assert differences(client.diff_file((name, "master"), "/")) == [("/", ""), ("/a", "")]
