"""Commits that a write upstream opens downstream: the rules of which `tests/parity/test_pfs_branches.py` sees less."""

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


def test_a_branch_gets_its_commit_after_those_upstream_however_old_it_is(pfs: PfsService) -> None:
    a, b, c = repo(pfs, "a"), repo(pfs, "b"), repo(pfs, "c")
    wire(pfs, c, a)
    wire(pfs, b, a)
    wire(pfs, c, b)
    commit_set = put(pfs, a)
    assert [str(each) for each in members(pfs, commit_set)["c"].provenance] == [f"default/b@{commit_set}"]


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
