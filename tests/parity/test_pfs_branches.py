"""Branches, their provenance, and the commits that follow from it."""

from collections.abc import Iterable

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2

from tests.parity.places import NOBODY, NOT_FOUND, UNKNOWN, ByVersion, Place, Refusal, branch_of, finished


def wire(client: Client, to: str, *upstream: str) -> None:
    client.create_branch(to, "master", provenance=[branch_of(each) for each in upstream])


def head(client: Client, repo: str, name: str = "master") -> pfs_pb2.CommitInfo:
    (info,) = client.inspect_commit((repo, name))
    return info


def repos(branches: Iterable[pfs_pb2.Branch]) -> list[str]:
    return [each.repo.name for each in branches]


def test_a_new_branch_has_an_empty_finished_commit(client: Client, place: Place, by_version: ByVersion) -> None:
    repo = place.repo()
    client.create_branch(repo, "dev")
    info = client.inspect_branch(repo, "dev")
    assert (info.branch.repo.name, info.branch.name, info.head.branch.name) == (repo, "dev", by_version("dev", ""))
    assert head(client, repo, "dev").origin.kind == pfs_pb2.AUTO
    assert head(client, repo, "dev").HasField("finished")


def test_a_branch_points_to_the_given_head(client: Client, place: Place) -> None:
    repo = place.repo()
    first, second = place.put(repo, a="1"), place.put(repo, a="2")
    client.create_branch(repo, "old", (repo, first))
    client.create_branch(repo, "new", (repo, "master"))
    client.create_branch(repo, "before", (repo, "master^"))
    heads = {info.branch.name: info.head.id for info in client.list_branch(repo)}
    assert heads == {"master": second, "old": first, "new": second, "before": first}
    client.create_branch(repo, "old", (repo, second))
    assert client.inspect_branch(repo, "old").head.id == second


def test_branches_are_listed_newest_first(client: Client, place: Place) -> None:
    repo = place.repo()
    for name in ("one", "two", "three"):
        client.create_branch(repo, name)
    assert [info.branch.name for info in client.list_branch(repo)] == ["three", "two", "one"]
    assert [info.branch.name for info in client.list_branch(repo, reverse=True)] == ["one", "two", "three"]


def test_provenance_is_shown_direct_and_transitive_in_both_directions(client: Client, place: Place) -> None:
    a, b, c = place.repo("a"), place.repo("b"), place.repo("c")
    wire(client, b, a)
    wire(client, c, b)
    below = client.inspect_branch(c, "master")
    assert (repos(below.direct_provenance), set(repos(below.provenance))) == ([b], {a, b})
    above = client.inspect_branch(a, "master")
    assert (repos(above.provenance), set(repos(above.subvenance))) == ([], {b, c})


def test_a_commit_opens_one_downstream_at_once(client: Client, place: Place) -> None:
    a, b = place.repo("a"), place.repo("b")
    wire(client, b, a)
    client.finish_commit((b, "master"))
    commit = place.put(a, x="1")
    below = head(client, b)
    assert below.commit.id == commit
    assert below.origin.kind == pfs_pb2.AUTO
    assert not below.HasField("finishing")
    assert [(each.repo.name, each.id) for each in below.direct_provenance] == [(a, commit)]


def test_other_provenance_is_taken_at_its_head(client: Client, place: Place) -> None:
    a, models, b = place.repo("a"), place.repo("models"), place.repo("b")
    wire(client, b, a, models)
    pushed, commit = place.put(models, m="1"), place.put(a, x="1")
    assert {(each.repo.name, each.id) for each in head(client, b).direct_provenance} == {(a, commit), (models, pushed)}


def test_a_diamond_gets_one_commit_at_its_tip(client: Client, place: Place) -> None:
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


def test_a_branch_with_provenance_is_closed_to_users(
    client: Client, place: Place, refusal: Refusal, by_version: ByVersion
) -> None:
    a, b = place.repo("a"), place.repo("b")
    wire(client, b, a)
    text = f"cannot start a commit on an output branch: default/{b}@master"
    client.finish_commit((b, "master"))
    finished(client, b)
    start = by_version(text, f"start commit in transaction: {text}")
    assert refusal(client.start_commit, b, "master") == (UNKNOWN, start)
    assert refusal(client.put_file_bytes, (b, "master"), "/x", b"1") == (UNKNOWN, text)
    # Without provenance it is an ordinary branch again, and its head is the old one.
    client.create_branch(b, "master")
    place.put(b, x="1")


def test_moving_a_head_back_is_followed_downstream_and_not_on_the_branch(client: Client, place: Place) -> None:
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


def test_an_unchanged_branch_gets_no_new_commit(client: Client, place: Place) -> None:
    a, b = place.repo("a"), place.repo("b")
    wire(client, b, a)
    made = head(client, b).commit.id
    wire(client, b, a)
    assert head(client, b).commit.id == made


def test_changing_provenance_makes_a_new_commit_and_removing_it_does_not(client: Client, place: Place) -> None:
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


def test_missing_provenance_is_created_empty(client: Client, place: Place) -> None:
    a, b = place.repo("a"), place.repo("b")
    client.create_branch(b, "master", provenance=[branch_of(a, "later")])
    assert head(client, a, "later").HasField("finished")
    assert not head(client, b).HasField("finished")
    assert head(client, a, "later").commit.id == head(client, b).commit.id


def test_invalid_graphs(client: Client, place: Place, refusal: Refusal, by_version: ByVersion) -> None:
    a, b = place.repo("a"), place.repo("b")
    wire(client, b, a)
    assert refusal(wire, client, a, b) == by_version(
        (UNKNOWN, f'branch "default/{b}@master" cannot be both in "default/{a}@master"\'s provenance and subvenance'),
        (
            grpc.StatusCode.INTERNAL,
            f"create branch: update head: cycle detected because default/{b}.user@master is already in the subvenance "
            f"of default/{a}.user@master",
        ),
    )
    assert refusal(client.create_branch, a, "x", provenance=[branch_of(a, "y")]) == (
        UNKNOWN,
        f"repo default/{a} cannot be in the provenance of its own branch",
    )
    # The refused requests left nothing behind.
    assert [info.branch.name for info in client.list_branch(a)] == ["master"]
    assert [info.branch.name for info in client.list_branch(b)] == ["master"]


@pytest.mark.crashes_pachd("two branches of one repo as provenance, since 2.8 (server_branch.go:182)")
def test_two_branches_of_a_repo_are_no_provenance(client: Client, place: Place, refusal: Refusal) -> None:
    a, b = place.repo("a"), place.repo("b")
    wire(client, b, a)
    code, text = refusal(client.create_branch, b, "x", provenance=[branch_of(a, "y"), branch_of(a, "z")])
    assert (code, text) == (
        UNKNOWN,
        f'validate DAG at end of transaction: multiple branches from the same repo, "default/{a}", cannot participate '
        "in a DAG",
    )
    assert [info.branch.name for info in client.list_branch(a)] == ["master"]
    assert [info.branch.name for info in client.list_branch(b)] == ["master"]


def test_a_branch_with_branches_downstream_is_deleted_only_by_force(
    client: Client, place: Place, refusal: Refusal, by_version: ByVersion, on_localpachd: bool
) -> None:
    a, b = place.repo("a"), place.repo("b")
    wire(client, b, a)
    code, text = refusal(client.delete_branch, a, "master")
    assert code is UNKNOWN
    assert text.endswith(
        by_version(
            f"branch master has [default/{b}@master] as subvenance, deleting it would break those branches",
            f"cannot be deleted because it's in the direct provenance of [default/{b}@master]",
        )
    )
    client.delete_branch(a, "master", force=True)
    assert list(client.inspect_branch(b, "master").provenance) == []
    assert list(client.list_branch(a)) == []
    if on_localpachd or by_version(True, False):
        client.delete_branch(a, "master")  # deleting it again succeeds


def test_commits_outlive_their_branch(client: Client, place: Place) -> None:
    repo = place.repo()
    commit = place.put(repo, a="1")
    client.delete_branch(repo, "master")
    with client.get_file((repo, None, commit), "/a") as file:
        assert file.read() == b"1"


def test_missing_and_invalid_branches(client: Client, place: Place, refusal: Refusal, by_version: ByVersion) -> None:
    repo = place.repo()
    no_branch, no_repo = f'branch "ghost" not found in repo default/{repo}', "repo default/ghost not found"
    # 2.12 goes on about the commit that it was to make.
    to_head = "get commit by commit key: repo (id=0, project=default, name=ghost, type=user) not found"
    unseen = f"inspect branch in transaction: branch (id=0, branch=default/{repo}@ghost) not found\n{no_branch}"
    characters = "name (a/b) invalid: only alphanumeric characters, underscores, and dashes are allowed"
    an_id = "branch name cannot be a UUID V4"
    for call, given, code, text, later in (
        (client.inspect_branch, (repo, "ghost"), NOT_FOUND, no_branch, unseen),
        (client.create_branch, ("ghost", "x"), NOT_FOUND, no_repo, to_head),
        (client.create_branch, (repo, "x", None, [branch_of("ghost")]), NOT_FOUND, no_repo, to_head),
        (client.list_branch, ("ghost",), NOT_FOUND, no_repo, no_repo),
        (client.create_branch, (repo, "a/b"), UNKNOWN, characters, characters),
        (client.create_branch, (repo, NOBODY), UNKNOWN, f"bad key: {an_id}", f"create branch: update head: {an_id}"),
    ):
        refused, said = refusal(call, *given)
        assert refused is code
        assert by_version(text, later) in said


def test_a_missing_head(client: Client, place: Place, refusal: Refusal, by_version: ByVersion) -> None:
    repo = place.repo()
    code, text = refusal(client.create_branch, repo, "x", (repo, "ghost"))
    assert code is NOT_FOUND
    assert text.startswith(f"unable to inspect default/{repo}@")
    assert text.endswith(f'{by_version(": ", chr(10))}branch "ghost" not found in repo default/{repo}')
