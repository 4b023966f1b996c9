"""Copies of a commit's files, kept by hash."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.commit_tree import CommitTree, batches
from pipelines.client.deployment.deployment import make_repo
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.client.stored_file import StoredFile
from pipelines.errors import LookalikeError
from stages.datum.file_cache import FileCache

pytestmark = pytest.mark.late_alone


@pytest.fixture
def tree(connection: Connection) -> CommitTree:
    make_repo(connection, "images")
    files = {"/a/one": b"1", "/a/two": b"22", "/b": b"333", "/c/facts.json": b'{"count": 4}', "/d/facts.json": b"[]"}
    commit = Repository(connection, "images").write([PutFile(path, content) for path, content in files.items()])
    Repository(connection, "images").write([PutFile("/b", b"later")])
    found = CommitTree.at(connection, "images", commit)
    assert found is not None
    return found


def test_a_tree_lists_reads_and_fetches_what_the_commit_held(tree: CommitTree, tmp_path: Path) -> None:
    assert [(each.name, each.size, each.is_directory) for each in tree.entries("/*")][:2] == [
        ("a", 3, True),
        ("b", 3, False),
    ]
    assert tree.entries("/none/*") == []
    assert (tree.read("b"), tree.read("none")) == (b"333", None)
    assert list(tree.numbers("/*/facts.json", "count")) == [4]
    told: list[int] = []
    for each in tree.entries("/*")[:2]:
        tree.fetch(each, tmp_path / "to" / each.name, told.append)
    assert told == [3, 3]
    assert (tmp_path / "to" / "a" / "two").read_bytes() == b"22"
    assert (tmp_path / "to" / "b").read_bytes() == b"333"


def test_a_missing_commit_is_none_and_an_open_one_refused(tree: CommitTree, connection: Connection) -> None:
    assert CommitTree.at(connection, "images", "0123456789ab4def0123456789abcdef") is None
    assert CommitTree.at(connection, "none", "0123456789ab4def0123456789abcdef") is None
    writing = connection.client.commit("images", "master", project_name=connection.project)
    with writing as begun, pytest.raises(LookalikeError, match="is not finished yet: wait for it"):
        CommitTree.at(connection, "images", begun.id)


def test_fetched_files_are_kept_up_to_a_limit_the_newest_used_longest(tree: CommitTree, tmp_path: Path) -> None:
    store = FileCache(tmp_path / "kept", most=3)
    one, two = tree.entries("/a/*")
    with store.scratch() as scratch:
        for name, entry in (("one", one), ("two", two), ("again", one)):
            tree.place(store, entry, scratch / name)
        assert (scratch / "one").samefile(scratch / "again")
        store.trim()
        tree.place(store, two, scratch / "third")
        assert (scratch / "two").samefile(scratch / "third")
        (b,) = tree.entries("/b")
        tree.place(store, b, scratch / "b")
        store.trim()
        assert (scratch / "two").read_bytes() == b"22"  # in use
    (kept,) = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert kept.read_bytes() == b"333"


def test_many_files_of_a_directory_come_with_one_call_and_those_that_are_kept_with_none(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repo(connection, "index")
    files = {f"/0/parts/{number}": b"%d" % (number % 10) * 3 for number in range(12)} | {"/0/facts": b"facts"}
    tree = CommitTree(
        connection, "index", Repository(connection, "index").write([PutFile(*each) for each in files.items()])
    )
    fetch, asked = CommitTree.fetch, list[str]()

    def counted(self: CommitTree, entry: StoredFile, *rest: Any) -> None:
        asked.append(entry.name)
        fetch(self, entry, *rest)

    monkeypatch.setattr(CommitTree, "fetch", counted)
    store, told = FileCache(tmp_path / "kept"), list[int]()
    wanted = [*tree.entries("/0/facts"), *tree.entries("/0/parts/*")]
    for calls in (["0/facts", "0/parts"], []):
        with store.scratch() as scratch:
            tree.place_all(store, wanted, scratch / "index", told.append)
            assert {each.path: (scratch / "index" / each.name).read_bytes() for each in wanted} == files
        assert (asked, sum(told)) == (calls, sum(map(len, files.values())))
        asked.clear()
        told.clear()


def test_scratch_directories_of_killed_processes_are_deleted_after_a_week(tmp_path: Path) -> None:
    for name, age in (("ask-old", 8), ("ask-new", 1)):
        (tmp_path / name).mkdir()
        moment = time.time() - age * 86400
        os.utime(tmp_path / name, (moment, moment))
    with FileCache(tmp_path).scratch() as scratch:
        assert {each.name for each in tmp_path.iterdir()} == {"ask-new", scratch.name}
    assert not scratch.exists()


def test_entries_are_grouped_by_size() -> None:
    entries = [StoredFile(str(size), size, "", False) for size in (5, 1, 2, 9, 1)]
    assert [[each.size for each in group] for group in batches(entries, 8)] == [[5, 1, 2], [9], [1]]
    assert list(batches([], 8)) == []
