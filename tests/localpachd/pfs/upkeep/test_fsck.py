"""The contradictions that fsck finds in a damaged database."""

import pytest

from localpachd.errors import PachError
from localpachd.pfs import branches, repos
from localpachd.pfs.files import file_modification
from localpachd.pfs.pfs_entities import Branch, Commit, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.upkeep import fsck
from localpachd.storage.filesets import DEFAULT_TAG


def put(pfs: PfsService, repo: Repo, path: str) -> None:
    content = pfs.chunks.store([path.encode()])
    file_modification.modify(
        pfs, Commit(repo, branch="master"), [file_modification.FileAddition(path, DEFAULT_TAG, content)]
    )


def found(pfs: PfsService) -> list[str]:
    with pfs.db.read() as conn:
        return list(fsck.check(conn))


def spoil(pfs: PfsService, statement: str) -> None:
    pfs.db.write(lambda conn: conn.execute(statement))


@pytest.fixture
def b(pfs: PfsService, a: Repo) -> Repo:
    """Downstream of `a`, which has two commits before that."""
    put(pfs, a, "/1")
    put(pfs, a, "/2")
    repo = Repo("default", "b")
    pfs.transact(lambda txn: repos.create(txn, repo))
    pfs.transact(lambda txn: branches.create(txn, Branch(repo, "master"), provenance=[Branch(a, "master")]))
    assert found(pfs) == []
    return repo


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("UPDATE branches SET head = 99 WHERE name = 'master' AND repo = 1", "head commit of default/a@master"),
        (
            "UPDATE commits SET parent = 99 WHERE seq = 2",
            "default/a@99 could not be found while checking parent commit",
        ),
        ("UPDATE branches SET head = 1 WHERE repo = 1", "parent branch default/a@master commit is not in direct prov"),
        ("DELETE FROM layers", "content of the commit default/a@"),
        ("DELETE FROM branches WHERE repo = 1", "a branch in the provenance of the branch default/b@master could not"),
    ],
)
def test_contradictions_are_named(pfs: PfsService, b: Repo, statement: str, text: str) -> None:
    spoil(pfs, statement)
    assert any(text in each for each in found(pfs))


def test_content_of_no_commit_is_removed(pfs: PfsService, b: Repo) -> None:
    spoil(pfs, "INSERT INTO commit_layers VALUES (99, 'diff', 0, 1)")
    with pytest.raises(PachError, match=r"^commits with dangling references: \[99\]$"):
        found(pfs)
    pfs.transact(fsck.fix)
    assert found(pfs) == []
