"""The number of SQL statements of a put: it does not read the same commit again and again, nor branch by branch."""

from collections.abc import Callable
from functools import partial

from localpachd.pfs import branches, repos
from localpachd.pfs.files import file_modification
from localpachd.pfs.files.file_modification import FileAddition, FileChange, FileRemoval
from localpachd.pfs.pfs_entities import Branch, Commit, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.storage.filesets import DEFAULT_TAG


def statements(pfs: PfsService, act: Callable[[], object]) -> int:
    """The number of statements that the writer and the one idle reader execute meanwhile."""
    seen: list[str] = []
    pfs.db.write(lambda conn: conn.set_trace_callback(seen.append))
    with pfs.db.read() as conn:
        conn.set_trace_callback(seen.append)
    seen.clear()
    act()
    found = len(seen)
    pfs.db.write(lambda conn: conn.set_trace_callback(None))
    with pfs.db.read() as conn:
        conn.set_trace_callback(None)
    return found


def put(pfs: PfsService, repo: Repo, path: str) -> None:
    content = pfs.chunks.store([path.encode()])
    changes: list[FileChange] = [FileRemoval(path, DEFAULT_TAG), FileAddition(path, DEFAULT_TAG, content)]
    file_modification.modify(pfs, Commit(repo, branch="master"), changes)


def least_of_ten(pfs: PfsService, repo: Repo) -> int:
    """Of a put that merges no layers."""
    return min(statements(pfs, partial(put, pfs, repo, f"/{number}")) for number in range(10))


def test_a_put_with_nothing_downstream(pfs: PfsService, a: Repo) -> None:
    put(pfs, a, "/first")
    assert least_of_ten(pfs, a) <= 42


def test_each_branch_downstream_costs_three_statements(pfs: PfsService, a: Repo) -> None:
    put(pfs, a, "/first")
    alone = least_of_ten(pfs, a)
    above = a
    for number in range(8):
        below = Repo("default", f"b{number}")
        pfs.transact(partial(repos.create, repo=below))
        master = Branch(below, "master")
        pfs.transact(partial(branches.create, branch=master, provenance=[Branch(above, "master")]))
        above = below
    assert least_of_ten(pfs, a) <= alone + 8 * 3 + 1
