"""Commits and files through pachyderm-sdk: writing, reading, listing, archiving, comparing; and file sets."""

import io
from pathlib import Path

import grpc
import pytest
from pachyderm_sdk import Client
from pachyderm_sdk.api import pfs

from tests.parity.sdk.places import Place, Refusal


def test_a_commit_is_open_in_its_context_and_finished_after(client: Client, place: Place, refusal: Refusal) -> None:
    master = place.branch()
    with client.pfs.commit(branch=master, description="by hand") as commit:
        commit.put_file_from_bytes(path="/a", data=b"1")
        opened = client.pfs.inspect_commit(commit=commit)
    info = commit.wait()
    # This client shows an unset time as the epoch.
    assert opened.finished.year == 1970 < opened.started.year == info.finished.year
    assert (info.description, info.details.size_bytes, info.origin.kind) == ("by hand", 1, pfs.OriginKind.USER)
    assert client.pfs.commit_exists(commit)
    assert [each.commit.id for each in commit.wait_all()] == [commit.id]
    assert not hasattr(commit, "put_file_from_bytes")
    code, text = refusal(client.pfs.put_file_from_bytes, commit=commit, path="/b", data=b"2")
    assert (code, text) == (
        grpc.StatusCode.UNKNOWN, f"commit default/{master.repo.name}@{commit.id} has already finished",
    )  # fmt: skip


def test_an_exception_in_the_context_keeps_earlier_commits(client: Client, place: Place) -> None:
    master = place.branch()
    kept = place.put(master, a="1")
    with pytest.raises(ZeroDivisionError), client.pfs.commit(branch=master) as commit:
        commit.put_file_from_bytes(path="/b", data=b"2")
        raise ZeroDivisionError
    assert client.pfs.inspect_commit(commit=kept).finished
    assert client.pfs.commit_exists(kept)


def test_every_way_to_write(client: Client, place: Place, tmp_path: Path) -> None:
    master = place.branch()
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "one").write_text("1")
    (tmp_path / "d" / "e" / "two").write_text("2")
    with client.pfs.commit(branch=master) as commit:
        commit.put_file_from_bytes(path="/bytes", data=b"a")
        commit.put_file_from_bytes(path="/bytes", data=b"b", append=True)
        commit.put_file_from_file(path="/file", file=io.BytesIO(b"line\n" * 3))
        commit.put_files(source=tmp_path / "d", path="/d")
        commit.copy_file(src=pfs.File(commit=commit, path="/bytes"), dst="/copy")
        commit.delete_file(path="/file")
    paths = [info.file.path for info in client.pfs.walk_file(file=pfs.File(commit=commit, path="/"))]
    assert paths == ["/", "/bytes", "/copy", "/d/", "/d/e/", "/d/e/two", "/d/one"]
    assert place.read(pfs.File(commit=commit, path="/copy")) == "ab"
    (tmp_path / "big").write_bytes(bytes(range(256)) * 80_000)
    big = pfs.File.from_uri(f"{master.repo.name}@master:/big")
    with client.pfs.commit(branch=master) as commit, (tmp_path / "big").open("rb") as file:
        commit.put_file_from_file(path="/big", file=file)
    with client.pfs.pfs_file(file=big) as stream:
        assert stream.read() == (tmp_path / "big").read_bytes()


def test_every_way_to_read(client: Client, place: Place, tmp_path: Path, refusal: Refusal) -> None:
    master = place.branch()
    with client.pfs.commit(branch=master) as commit:
        for path in ("/a", "/d/b", "/d/c"):
            commit.put_file_from_bytes(path=path, data=path.encode())

    def at(path: str) -> pfs.File:
        return pfs.File(commit=commit, path=path)

    assert [info.file.path for info in client.pfs.list_file(file=at("/"))] == ["/a", "/d/"]
    assert [info.file.path for info in client.pfs.list_file(file=at("/d"), number=1)] == ["/d/b"]
    assert [info.file.path for info in client.pfs.glob_file(commit=commit, pattern="/*/*")] == ["/d/b", "/d/c"]
    info = client.pfs.inspect_file(file=at("/d"))
    assert (info.file.path, info.file_type, info.size_bytes) == ("/d/", pfs.FileType.DIR, 8)
    assert client.pfs.path_exists(at("/a")) and not client.pfs.path_exists(at("/ghost"))
    with client.pfs.pfs_file(file=at("/a")) as stream:
        assert (stream.read(1), stream.read()) == (b"/", b"a")
    with client.pfs.pfs_tar_file(file=at("/")) as tar:
        tar.extractall(path=tmp_path, filter="data")
    assert (tmp_path / "d" / "b").read_text() == "/d/b"
    code, text = refusal(lambda: place.read(at("/ghost")))
    assert code is grpc.StatusCode.NOT_FOUND
    assert f"not found in repo default/{master.repo.name} at commit {commit.id}" in text


def test_an_empty_file_is_read(client: Client, place: Place) -> None:
    commit = place.put(place.branch(), a="")
    assert place.read(pfs.File(commit=commit, path="/a")) == ""


def test_histories(client: Client, place: Place, refusal: Refusal) -> None:
    master = place.branch()
    ids = [place.put(master, a=text).id for text in ("1", "2", "3")]
    listed = list(client.pfs.list_commit(repo=master.repo))
    assert [info.commit.id for info in listed] == ids[::-1]
    assert [info.commit.id for info in client.pfs.list_commit(repo=master.repo, number=2)] == ids[:0:-1]
    root = pfs.Commit.from_uri(f"{master.repo.name}@{ids[2]}^2")
    assert client.pfs.inspect_commit(commit=root).commit.id == ids[0]
    subscription = client.pfs.subscribe_commit(repo=master.repo, branch="master", state=pfs.CommitState.FINISHED)
    assert [next(subscription).commit.id for _ in ids] == ids
    new, old = (pfs.File.from_uri(f"{master.repo.name}@{id_}:/a") for id_ in (ids[2], ids[0]))
    (pair,) = client.pfs.diff_file(new_file=new, old_file=old)
    assert (pair.new_file.file.path, pair.old_file.file.commit.id) == ("/a", ids[0])
    *found, last = client.pfs.find_commits(start=pfs.Commit(repo=master.repo, id=ids[2]), file_path="/a")
    assert [each.found_commit.id for each in found] == ids[::-1]
    assert last.commits_searched == 3
    client.pfs.squash_commit_set(commit_set=pfs.CommitSet(id=ids[0]))
    client.pfs.drop_commit_set(commit_set=pfs.CommitSet(id=ids[2]))
    assert [info.commit.id for info in client.pfs.list_commit(repo=master.repo)] == [ids[1]]
    gone = pfs.Commit(repo=master.repo, id=ids[0])
    assert not client.pfs.commit_exists(gone)
    assert refusal(client.pfs.inspect_commit, commit=gone) == (
        grpc.StatusCode.NOT_FOUND, f"commit default/{master.repo.name}@{ids[0]} not found",
    )  # fmt: skip


@pytest.mark.since("2.11")
def test_file_sets_of_wanted_size_and_kind(client: Client, place: Place) -> None:
    master = place.branch()
    place.put(master, a="1", b="2")
    place.put(master, c="3")
    head = pfs.Commit(repo=master.repo, branch=master)
    whole = client.pfs.get_file_set(commit=head).file_set_id
    shards = client.pfs.shard_file_set(file_set_id=whole, num_files=2).shards
    assert [(shard.lower, shard.upper) for shard in shards] == [("", "/c"), ("/c", "")]
    virtual = pfs.Repo(name="__filesets__")
    for type_, expected in (
        (pfs.GetFileSetRequestFileSetType.TOTAL, ["/a", "/b", "/c"]),
        (pfs.GetFileSetRequestFileSetType.DIFF, ["/c"]),
    ):
        got = client.pfs.get_file_set(commit=head, type=type_).file_set_id
        listed = client.pfs.list_file(file=pfs.File(commit=pfs.Commit(repo=virtual, id=got), path="/"))
        assert [info.file.path for info in listed] == expected
