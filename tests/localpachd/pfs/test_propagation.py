"""Commits that a write upstream opens downstream: Pachyderm 2.7's rules, seen through the room's own functions."""

import pytest

from localpachd.errors import PachError
from localpachd.pfs import branches, commit_sets, commits, contents, history, repos
from localpachd.pfs.pfs_entities import Branch, Commit, CommitInfo, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction


def repo(pfs: PfsService, name: str, type_: str = "user") -> Repo:
    made = Repo("default", name, type_)
    pfs.transact(lambda txn: repos.create(txn, made))
    return made


def master(of: Repo) -> Branch:
    return Branch(of, "master")


def wire(pfs: PfsService, to: Repo, *upstream: Repo) -> None:
    pfs.transact(lambda txn: branches.create(txn, master(to), provenance=[master(each) for each in upstream]))


def put(pfs: PfsService, into: Repo) -> str:
    def write(txn: Transaction) -> str:
        commit = commits.start(txn, master(into))
        commits.finish(txn, commit)
        return txn.id

    return pfs.transact(write)


def members(pfs: PfsService, commit_set: str) -> dict[str, CommitInfo]:
    with pfs.db.read() as conn:
        return {info.commit.repo.name: info for info in commit_sets.members(conn, commit_set)}


def test_a_commit_opens_one_downstream_of_it_everywhere_at_once(pfs: PfsService) -> None:
    a, b, c = repo(pfs, "a"), repo(pfs, "b"), repo(pfs, "c")
    wire(pfs, b, a)
    wire(pfs, c, b)
    opened = pfs.transact(lambda txn: commits.start(txn, master(a)))
    found = members(pfs, opened.commit.id)
    assert list(found) == ["a", "b", "c"]
    assert [info.origin for info in found.values()] == ["USER", "AUTO", "AUTO"]
    assert all(info.finished is None for info in found.values())
    assert [str(each) for each in found["c"].provenance] == [f"default/b@{opened.commit.id}"]
    assert len({info.started for info in found.values()}) == 1


def test_other_branches_upstream_are_read_at_their_heads(pfs: PfsService) -> None:
    a, models, b = repo(pfs, "a"), repo(pfs, "models"), repo(pfs, "b")
    wire(pfs, b, a, models)
    pushed = put(pfs, models)
    commit_set = put(pfs, a)
    assert {str(each) for each in members(pfs, commit_set)["b"].provenance} == {
        f"default/a@{commit_set}",
        f"default/models@{pushed}",
    }


def test_a_diamond_gets_one_commit_at_its_tip(pfs: PfsService) -> None:
    a, left, right, tip = (repo(pfs, name) for name in ("a", "left", "right", "tip"))
    wire(pfs, left, a)
    wire(pfs, right, a)
    wire(pfs, tip, left, right)
    commit_set = put(pfs, a)
    assert {str(each) for each in members(pfs, commit_set)["tip"].provenance} == {
        f"default/left@{commit_set}",
        f"default/right@{commit_set}",
    }


def test_a_branch_gets_its_commit_after_those_upstream_however_old_it_is(pfs: PfsService) -> None:
    a, b, c = repo(pfs, "a"), repo(pfs, "b"), repo(pfs, "c")
    wire(pfs, c, a)
    wire(pfs, b, a)
    wire(pfs, c, b)
    commit_set = put(pfs, a)
    assert [str(each) for each in members(pfs, commit_set)["c"].provenance] == [f"default/b@{commit_set}"]


def test_missing_provenance_is_created_with_an_empty_commit(pfs: PfsService) -> None:
    a, b = repo(pfs, "a"), repo(pfs, "b")
    wire(pfs, b, a)
    with pfs.db.read() as conn:
        above = commits.resolve(conn, Commit(a, branch="master"))
        below = commits.resolve(conn, Commit(b, branch="master"))
    assert above.origin == "AUTO" and above.finished is not None and above.size == 0
    assert below.finished is None, "it stays open for a job to fill"


def test_a_branch_with_only_a_spec_repo_upstream_is_closed_and_gets_no_commits(pfs: PfsService) -> None:
    spout = repo(pfs, "spout")
    spec = repo(pfs, "spout", "spec")
    pfs.transact(lambda txn: branches.create(txn, master(spout), provenance=[master(spec)]))
    put(pfs, spec)
    with pfs.db.read() as conn:
        found = list(history.list_repo(conn, spout))
    assert len(found) == 1 and found[0].finished is not None


def test_a_commit_that_no_job_fills_is_empty_even_if_its_parent_is_not(pfs: PfsService) -> None:
    spout = repo(pfs, "spout")
    spec = repo(pfs, "spout", "spec")

    def write(txn: Transaction) -> CommitInfo:
        info = commits.start(txn, master(spout))
        contents.add_layer(txn, info, [("/x", "default", pfs.chunks.store([b"1"]))])
        return commits.finish(txn, info)

    before = pfs.transact(write)
    pfs.transact(lambda txn: branches.create(txn, master(spout), provenance=[master(spec)]))
    with pfs.db.read() as conn:
        head = commits.resolve(conn, Commit(spout, branch="master"))
        assert head.parent == before.commit
        assert (head.size, contents.layers(conn, head)) == (0, ())


def test_lists_of_branches_are_sorted_by_their_keys(pfs: PfsService) -> None:
    late, dashed, early = repo(pfs, "b"), repo(pfs, "a-b"), repo(pfs, "a")
    below = repo(pfs, "below")
    wire(pfs, below, late, early, dashed)
    with pfs.db.read() as conn:
        info = branches.inspect(conn, master(below))
    # "-" comes before the "." that follows a repo's name in a key.
    assert [each.repo.name for each in info.provenance] == ["a-b", "a", "b"]
    assert info.direct_provenance == info.provenance


def test_repos_are_deleted_together_downstream_first(pfs: PfsService) -> None:
    b, a = repo(pfs, "b"), repo(pfs, "a")
    wire(pfs, b, a)
    gone = pfs.transact(lambda txn: repos.delete_many(txn, ["default"]))
    assert set(gone) == {a, b}
    with pfs.db.read() as conn:
        assert repos.list_all(conn) == [] and branches.list_all(conn) == []


def test_a_cycle_is_refused(pfs: PfsService) -> None:
    a, b, c = repo(pfs, "a"), repo(pfs, "b"), repo(pfs, "c")
    wire(pfs, b, a)
    wire(pfs, c, b)
    with pytest.raises(PachError, match="provenance and subvenance$"):
        wire(pfs, a, c)


def test_users_may_not_commit_to_an_output_branch(pfs: PfsService) -> None:
    a, b = repo(pfs, "a"), repo(pfs, "b")
    wire(pfs, b, a)
    with pytest.raises(PachError, match=r"^cannot start a commit on an output branch: default/b@master$"):
        pfs.transact(lambda txn: commits.start(txn, master(b)))


def test_two_branches_of_a_repo_in_one_dag_are_refused_and_nothing_changes(pfs: PfsService) -> None:
    a, b = repo(pfs, "a"), repo(pfs, "b")
    with pytest.raises(PachError, match="multiple branches from the same repo"):
        pfs.transact(lambda txn: branches.create(txn, master(b), provenance=[Branch(a, "x"), Branch(a, "y")]))
    with pfs.db.read() as conn:
        assert branches.list_all(conn) == []


def test_moving_a_head_back_recomputes_downstream_and_leaves_the_branch_there(pfs: PfsService) -> None:
    a, b = repo(pfs, "a"), repo(pfs, "b")
    wire(pfs, b, a)
    first, _ = put(pfs, a), put(pfs, a)
    pfs.transact(lambda txn: branches.create(txn, master(a), head=Commit(a, first)))
    with pfs.db.read() as conn:
        below = commits.resolve(conn, Commit(b, branch="master"))
        assert commits.resolve(conn, Commit(a, branch="master")).commit.id == first
    assert below.commit.id not in (first, _)
    assert [each.id for each in below.provenance] == [first]


def test_a_repo_with_subvenance_is_deleted_only_by_force(pfs: PfsService) -> None:
    a, b = repo(pfs, "a"), repo(pfs, "b")
    wire(pfs, b, a)
    with pytest.raises(PachError, match="as subvenance, deleting it would break those branches"):
        pfs.transact(lambda txn: repos.delete(txn, a))
    pfs.transact(lambda txn: repos.delete(txn, a, force=True))
    with pfs.db.read() as conn:
        assert branches.inspect(conn, master(b)).direct_provenance == ()


def test_a_commit_set_is_shown_with_its_provenance_upstream_first(pfs: PfsService) -> None:
    a, models, b = repo(pfs, "a"), repo(pfs, "models"), repo(pfs, "b")
    wire(pfs, b, a, models)
    pushed, commit_set = put(pfs, models), put(pfs, a)
    with pfs.db.read() as conn:
        found = [str(info.commit) for info in commit_sets.inspect(conn, commit_set)]
    assert found == [f"default/models@{pushed}", f"default/a@{commit_set}", f"default/b@{commit_set}"]
