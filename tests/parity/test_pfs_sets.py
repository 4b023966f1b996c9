"""Commit sets: what was made by one step, over all repos."""

import threading
from collections.abc import Callable
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2

NOBODY = "0" * 12 + "4" + "0" * 19


def branch(repo: str) -> Any:
    return pfs_pb2.Branch(
        repo=pfs_pb2.Repo(name=repo, type="user", project=pfs_pb2.Project(name="default")), name="master"
    )


def named(infos: Any) -> list[tuple[str, str]]:
    return [(info.commit.repo.name, info.commit.id) for info in infos]


def test_a_set_shows_its_commits_and_what_they_depend_on_upstream_first(client: Any, place: Any) -> None:
    a, models, b, c = (place.repo(stem) for stem in ("a", "models", "b", "c"))
    client.create_branch(b, "master", provenance=[branch(a), branch(models)])
    client.create_branch(c, "master", provenance=[branch(b)])
    pushed, commit = place.put(models, m="1"), place.put(a, x="1")
    found = named(client.inspect_commit(commit))
    assert set(found) == {(models, pushed), (a, commit), (b, commit), (c, commit)}
    assert found[-2:] == [(b, commit), (c, commit)]


def test_all_commits_of_a_set_have_one_time(client: Any, place: Any) -> None:
    a, b = place.repo("a"), place.repo("b")
    client.create_branch(b, "master", provenance=[branch(a)])
    commit = place.put(a, x="1")
    assert len({info.started.ToNanoseconds() for info in client.inspect_commit(commit)}) == 1


def test_waiting_for_a_set_is_waiting_for_each_of_its_commits(client: Any, place: Any) -> None:
    a, b = place.repo("a"), place.repo("b")
    client.create_branch(b, "master", provenance=[branch(a)])
    client.finish_commit((b, "master"))
    commit = place.put(a, x="1")
    seen: list[Any] = []
    waiting = threading.Thread(target=lambda: seen.extend(client.wait_commit(commit)))
    waiting.start()
    client.finish_commit((b, commit))
    waiting.join(timeout=60)
    assert named(seen) == [(a, commit), (b, commit)]
    assert all(info.HasField("finished") for info in seen)


def test_sets_are_listed_newest_first_with_what_they_depend_on(
    client: Any, unique: Callable[[str], str], place: Any
) -> None:
    a, models, b = place.repo("a"), place.repo("models"), place.repo("b")
    client.create_branch(b, "master", provenance=[branch(a), branch(models)])
    pushed, commit = place.put(models, m="1"), place.put(a, x="1")
    listed = list(client.list_commit(project_name="default"))
    ids = [info.commit_set.id for info in listed]
    assert ids.index(commit) < ids.index(pushed)
    assert set(named(listed[ids.index(commit)].commits)) == {(models, pushed), (a, commit), (b, commit)}
    elsewhere = unique("project")
    client.create_project(elsewhere)
    assert list(client.list_commit(project_name=elsewhere)) == []
    client.delete_project(elsewhere)


def test_a_set_that_is_not_there(client: Any, refusal: Callable[..., Any]) -> None:
    assert refusal(client.inspect_commit, NOBODY) == (
        grpc.StatusCode.NOT_FOUND,
        f"no commits found for commitset {NOBODY}",
    )
