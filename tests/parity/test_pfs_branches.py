"""Branches, what they are made from, and the commits that follow from that."""

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from python_pachyderm.proto.v2.pfs import pfs_pb2

UNKNOWN, NOT_FOUND = grpc.StatusCode.UNKNOWN, grpc.StatusCode.NOT_FOUND


def branch(repo: str, name: str = "master") -> Any:
    return pfs_pb2.Branch(repo=pfs_pb2.Repo(name=repo, type="user", project=pfs_pb2.Project(name="default")), name=name)


def wire(client: Any, to: str, *upstream: str) -> None:
    client.create_branch(to, "master", provenance=[branch(each) for each in upstream])


def head(client: Any, repo: str, name: str = "master") -> Any:
    (info,) = client.inspect_commit((repo, name))
    return info


def repos(branches: Any) -> list[str]:
    return [each.repo.name for each in branches]


def test_a_new_branch_has_an_empty_finished_commit(client: Any, place: Any) -> None:
    repo = place.repo()
    client.create_branch(repo, "dev")
    info = client.inspect_branch(repo, "dev")
    assert (info.branch.repo.name, info.branch.name, info.head.branch.name) == (repo, "dev", "dev")
    assert head(client, repo, "dev").origin.kind == pfs_pb2.AUTO
    assert head(client, repo, "dev").HasField("finished")


def test_a_branch_points_where_it_is_told(client: Any, place: Any) -> None:
    repo = place.repo()
    first, second = place.put(repo, a="1"), place.put(repo, a="2")
    client.create_branch(repo, "old", (repo, first))
    client.create_branch(repo, "new", (repo, "master"))
    client.create_branch(repo, "before", (repo, "master^"))
    heads = {info.branch.name: info.head.id for info in client.list_branch(repo)}
    assert heads == {"master": second, "old": first, "new": second, "before": first}
    client.create_branch(repo, "old", (repo, second))
    assert client.inspect_branch(repo, "old").head.id == second


def test_branches_are_listed_newest_first(client: Any, place: Any) -> None:
    repo = place.repo()
    for name in ("one", "two", "three"):
        client.create_branch(repo, name)
    assert [info.branch.name for info in client.list_branch(repo)] == ["three", "two", "one"]
    assert [info.branch.name for info in client.list_branch(repo, reverse=True)] == ["one", "two", "three"]


def test_provenance_is_shown_direct_and_transitive_in_both_directions(client: Any, place: Any) -> None:
    a, b, c = place.repo("a"), place.repo("b"), place.repo("c")
    wire(client, b, a)
    wire(client, c, b)
    below = client.inspect_branch(c, "master")
    assert (repos(below.direct_provenance), repos(below.provenance)) == ([b], [a, b])
    above = client.inspect_branch(a, "master")
    assert (repos(above.provenance), repos(above.subvenance)) == ([], [b, c])


def test_a_commit_opens_one_downstream_at_once_which_reads_as_the_one_before(client: Any, place: Any) -> None:
    a, b = place.repo("a"), place.repo("b")
    wire(client, b, a)
    client.finish_commit((b, "master"))
    commit = place.put(a, x="1")
    below = head(client, b)
    assert below.commit.id == commit
    assert below.origin.kind == pfs_pb2.AUTO
    assert not below.HasField("finishing")
    assert [(each.repo.name, each.id) for each in below.direct_provenance] == [(a, commit)]


def test_what_lies_beside_is_taken_at_its_head(client: Any, place: Any) -> None:
    a, models, b = place.repo("a"), place.repo("models"), place.repo("b")
    wire(client, b, a, models)
    pushed, commit = place.put(models, m="1"), place.put(a, x="1")
    assert {(each.repo.name, each.id) for each in head(client, b).direct_provenance} == {(a, commit), (models, pushed)}


def test_a_diamond_gets_one_commit_at_its_tip(client: Any, place: Any) -> None:
    a, left, right, tip = (place.repo(stem) for stem in ("a", "left", "right", "tip"))
    wire(client, left, a)
    wire(client, right, a)
    wire(client, tip, left, right)
    before = len(list(client.list_commit(tip, all=True)))
    commit = place.put(a, x="1")
    assert len(list(client.list_commit(tip, all=True))) == before + 1
    assert {(each.repo.name, each.id) for each in head(client, tip).direct_provenance} == {
        (left, commit),
        (right, commit),
    }


def test_a_branch_with_provenance_is_closed_to_users(client: Any, place: Any, refusal: Callable[..., Any]) -> None:
    a, b = place.repo("a"), place.repo("b")
    wire(client, b, a)
    text = f"cannot start a commit on an output branch: default/{b}@master"
    assert refusal(client.start_commit, b, "master") == (UNKNOWN, text)
    client.finish_commit((b, "master"))
    assert refusal(client.put_file_bytes, (b, "master"), "/x", b"1") == (UNKNOWN, text)
    # Without provenance it is an ordinary branch again, and its head is the old one.
    client.create_branch(b, "master")
    place.put(b, x="1")


def test_moving_a_head_back_is_followed_downstream_and_not_on_the_branch(client: Any, place: Any) -> None:
    a, b = place.repo("a"), place.repo("b")
    first, second = place.put(a, x="1"), place.put(a, x="2")
    wire(client, b, a)
    before = head(client, b)
    client.create_branch(a, "master", (a, first))
    assert client.inspect_branch(a, "master").head.id == first
    below = head(client, b)
    assert below.commit.id not in (first, second, before.commit.id)
    assert [each.id for each in below.direct_provenance] == [first]
    assert below.parent_commit.id == before.commit.id


def test_an_unchanged_branch_gets_no_new_commit(client: Any, place: Any) -> None:
    a, b = place.repo("a"), place.repo("b")
    wire(client, b, a)
    made = head(client, b).commit.id
    wire(client, b, a)
    assert head(client, b).commit.id == made


def test_other_provenance_makes_a_new_commit_and_none_at_all_does_not(client: Any, place: Any) -> None:
    a, other, b = place.repo("a"), place.repo("other"), place.repo("b")
    wire(client, b, a)
    first = head(client, b).commit.id
    wire(client, b, a, other)
    second = head(client, b)
    assert second.commit.id != first
    assert second.parent_commit.id == first
    wire(client, b)
    assert head(client, b).commit.id == second.commit.id
    place.put(a, x="1")
    assert head(client, b).commit.id == second.commit.id


def test_provenance_that_is_not_there_yet_is_made_empty(client: Any, place: Any) -> None:
    a, b = place.repo("a"), place.repo("b")
    client.create_branch(b, "master", provenance=[branch(a, "later")])
    assert head(client, a, "later").HasField("finished")
    assert not head(client, b).HasField("finished")
    assert head(client, a, "later").commit.id == head(client, b).commit.id


def test_graphs_that_cannot_be(client: Any, place: Any, refusal: Callable[..., Any]) -> None:
    a, b = place.repo("a"), place.repo("b")
    wire(client, b, a)
    assert refusal(wire, client, a, b) == (
        UNKNOWN,
        f'branch "default/{b}@master" cannot be both in "default/{a}@master"\'s provenance and subvenance',
    )
    assert refusal(client.create_branch, a, "x", provenance=[branch(a, "y")]) == (
        UNKNOWN,
        f"repo default/{a} cannot be in the provenance of its own branch",
    )
    code, text = refusal(client.create_branch, b, "x", provenance=[branch(a, "y"), branch(a, "z")])
    assert (code, text) == (
        UNKNOWN,
        f'validate DAG at end of transaction: multiple branches from the same repo, "default/{a}", cannot participate '
        "in a DAG",
    )
    # What was refused has left nothing.
    assert [info.branch.name for info in client.list_branch(a)] == ["master"]
    assert [info.branch.name for info in client.list_branch(b)] == ["master"]


def test_a_branch_that_others_are_made_from_stays_unless_forced(
    client: Any, place: Any, refusal: Callable[..., Any]
) -> None:
    a, b = place.repo("a"), place.repo("b")
    wire(client, b, a)
    assert refusal(client.delete_branch, a, "master") == (
        UNKNOWN,
        f"branch master has [default/{b}@master] as subvenance, deleting it would break those branches",
    )
    client.delete_branch(a, "master", force=True)
    assert list(client.inspect_branch(b, "master").provenance) == []
    assert list(client.list_branch(a)) == []
    client.delete_branch(a, "master")  # one that is gone already is no failure


def test_commits_outlive_their_branch(client: Any, place: Any) -> None:
    repo = place.repo()
    commit = place.put(repo, a="1")
    client.delete_branch(repo, "master")
    with client.get_file((repo, None, commit), "/a") as file:
        assert file.read() == b"1"


@pytest.mark.parametrize(
    ("call", "code", "text"),
    [
        (lambda c, r: c.inspect_branch(r, "ghost"), NOT_FOUND, 'branch "ghost" not found in repo default/{repo}'),
        (lambda c, r: c.create_branch("ghost", "x"), NOT_FOUND, "repo default/ghost not found"),
        (lambda c, r: c.create_branch(r, "x", provenance=[branch("ghost")]), NOT_FOUND, "repo default/ghost not found"),
        (lambda c, r: c.list_branch("ghost"), NOT_FOUND, "repo default/ghost not found"),
        (
            lambda c, r: c.create_branch(r, "a/b"),
            UNKNOWN,
            "name (a/b) invalid: only alphanumeric characters, underscores, and dashes are allowed",
        ),
        (lambda c, r: c.create_branch(r, "0" * 12 + "4" + "0" * 19), UNKNOWN, "branch name cannot be a UUID V4"),
    ],
)
def test_branches_that_are_not_there_or_cannot_be(
    client: Any, place: Any, refusal: Callable[..., Any], call: Callable[..., Any], code: Any, text: str
) -> None:
    repo = place.repo()
    assert refusal(call, client, repo) == (code, text.format(repo=repo))


def test_a_head_that_is_not_there(client: Any, place: Any, refusal: Callable[..., Any]) -> None:
    repo = place.repo()
    code, text = refusal(client.create_branch, repo, "x", (repo, "ghost"))
    assert code is NOT_FOUND
    assert text.startswith(f"unable to inspect default/{repo}@")
    assert text.endswith(f': branch "ghost" not found in repo default/{repo}')
