"""Finding the commits that changed a file."""

from typing import Protocol

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from tests.parity.places import Place, Refusal, commit_of


class Find(Protocol):
    """Searches for the commits that changed a file, from a commit or the head of master backwards. An answer is its
    kind, the commit it names, and how many were searched."""

    def __call__(self, repo: str, path: str, commit: str = "", limit: int = 0) -> list[tuple[str, str, int]]: ...


@pytest.fixture
def find(stub: pfs_pb2_grpc.APIStub) -> Find:
    """See Find."""

    def search(repo: str, path: str, commit: str = "", limit: int = 0) -> list[tuple[str, str, int]]:
        start = commit_of(repo, commit, "" if commit else "master")
        replies = list(stub.FindCommits(pfs_pb2.FindCommitsRequest(start=start, file_path=path, limit=limit)))
        kinds = [reply.WhichOneof("result") for reply in replies]
        return [
            (kind.partition("_")[0], getattr(reply, kind).id, reply.commits_searched)
            for kind, reply in zip(kinds, replies, strict=True)
        ]

    return search


def test_additions_and_removals_are_found_newest_first(place: Place, find: Find) -> None:
    repo = place.repo()
    first, second, third, fourth = (
        place.put(repo, a="1"),
        place.put(repo, b="2"),
        place.put(repo, a=None),
        place.put(repo, c="3"),
    )
    assert find(repo, "/a") == [("found", third, 1), ("found", first, 3), ("last", first, 4)]
    assert find(repo, "/a", second) == [("found", first, 1), ("last", first, 2)]
    assert find(repo, "/a", limit=1) == [("found", third, 1), ("last", third, 2)]
    assert find(repo, "/nothing") == [("last", first, 4)]
    assert find(repo, "/c")[0] == ("found", fourth, 0)


def test_the_child_of_a_squashed_commit_has_its_files_but_did_not_change_them(
    client: Client, place: Place, find: Find
) -> None:
    repo = place.repo()
    first, second, third = place.put(repo, a="1"), place.put(repo, b="2"), place.put(repo, c="3")
    client.squash_commit(second)
    assert place.paths(repo, third) == ["/a", "/b", "/c"]
    assert find(repo, "/b") == [("last", first, 2)]
    assert find(repo, "/a") == [("found", first, 1), ("last", first, 2)]


def test_only_the_file_itself_counts(place: Place, find: Find) -> None:
    repo = place.repo()
    only = place.put(repo, a_b="1")
    assert find(repo, "/a") == find(repo, "/a/bc") == [("last", only, 1)]
    assert find(repo, "/a/b") == [("found", only, 0), ("last", only, 1)]


def test_an_open_commit_cannot_be_searched(client: Client, place: Place, find: Find, refusal: Refusal) -> None:
    repo = place.repo()
    commit = client.start_commit(repo, "master")
    assert refusal(find, repo, "/a", commit.id) == (
        grpc.StatusCode.UNAVAILABLE,
        f"commit default/{repo}@{commit.id} not finished",
    )
    client.finish_commit(commit)
