"""Commit sets: the commits that one change made, in all repos."""

import threading
from collections.abc import Iterable

import grpc
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2

from tests.parity.places import NOBODY, Place, Refusal, branch_of
from tests.servers import Unique


def named(infos: Iterable[pfs_pb2.CommitInfo]) -> list[tuple[str, str]]:
    return [(info.commit.repo.name, info.commit.id) for info in infos]


def test_a_set_shows_its_commits_and_their_provenance_upstream_first(client: Client, place: Place) -> None:
    a, models, b, c = (place.repo(stem) for stem in ("a", "models", "b", "c"))
    client.create_branch(b, "master", provenance=[branch_of(a), branch_of(models)])
    client.create_branch(c, "master", provenance=[branch_of(b)])
    pushed, commit = place.put(models, m="1"), place.put(a, x="1")
    found = named(client.inspect_commit(commit))
    assert set(found) == {(models, pushed), (a, commit), (b, commit), (c, commit)}
    assert found[-2:] == [(b, commit), (c, commit)]


def test_all_commits_of_a_set_have_one_time(client: Client, place: Place) -> None:
    a, b = place.repo("a"), place.repo("b")
    client.create_branch(b, "master", provenance=[branch_of(a)])
    commit = place.put(a, x="1")
    assert len({info.started.ToNanoseconds() for info in client.inspect_commit(commit)}) == 1


def test_waiting_for_a_set_is_waiting_for_each_of_its_commits(client: Client, place: Place) -> None:
    a, b = place.repo("a"), place.repo("b")
    client.create_branch(b, "master", provenance=[branch_of(a)])
    client.finish_commit((b, "master"))
    commit = place.put(a, x="1")
    seen: list[pfs_pb2.CommitInfo] = []
    waiting = threading.Thread(target=lambda: seen.extend(client.wait_commit(commit)))
    waiting.start()
    client.finish_commit((b, commit))
    waiting.join(timeout=60)
    assert named(seen) == [(a, commit), (b, commit)]
    assert all(info.HasField("finished") for info in seen)


def test_sets_are_listed_newest_first_with_their_provenance(client: Client, unique: Unique, place: Place) -> None:
    a, models, b = place.repo("a"), place.repo("models"), place.repo("b")
    client.create_branch(b, "master", provenance=[branch_of(a), branch_of(models)])
    pushed, commit = place.put(models, m="1"), place.put(a, x="1")
    listed = list(client.list_commit(project_name="default"))
    ids = [info.commit_set.id for info in listed]
    assert ids.index(commit) < ids.index(pushed)
    assert set(named(listed[ids.index(commit)].commits)) == {(models, pushed), (a, commit), (b, commit)}
    elsewhere = unique("project")
    client.create_project(elsewhere)
    assert list(client.list_commit(project_name=elsewhere)) == []
    client.delete_project(elsewhere)


def test_a_missing_set(client: Client, refusal: Refusal) -> None:
    assert refusal(client.inspect_commit, NOBODY) == (
        grpc.StatusCode.NOT_FOUND,
        f"no commits found for commitset {NOBODY}",
    )
