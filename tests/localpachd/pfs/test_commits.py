from functools import partial

from localpachd.pfs import commits, contents, history
from localpachd.pfs.pfs_entities import Branch, Commit, CommitInfo, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.storage.filesets import FileContent


def write(pfs: PfsService, repo: Repo, files: dict[str, bytes], error: str = "") -> CommitInfo:
    """A finished commit that adds these files."""

    def step(txn: Transaction) -> CommitInfo:
        commit = commits.start(txn, Branch(repo, "master"))
        entries: list[tuple[str, str, FileContent | None]] = [
            (path, "default", pfs.chunks.store([data])) for path, data in sorted(files.items())
        ]
        contents.add_layer(txn, commit, entries)
        return commits.finish(txn, commit, error)

    return pfs.transact(step)


def tree(pfs: PfsService, commit: Commit) -> dict[str, bytes]:
    with pfs.db.read() as conn:
        files = contents.fileset(conn, commits.resolve(conn, commit))
        return {file.path: b"".join(pfs.chunks.read(file.content)) for file in files.walk()}


def test_an_open_commit_is_bounded_by_what_it_stands_on_and_what_was_written(pfs: PfsService, a: Repo) -> None:
    first = write(pfs, a, {"/x": b"123"})

    def begin(txn: Transaction) -> CommitInfo:
        info = commits.start(txn, Branch(a, "master"))
        contents.add_layer(txn, info, [("/x", "default", None), ("/y", "default", pfs.chunks.store([b"45"]))])
        return info

    opened = pfs.transact(begin)
    with pfs.db.read() as conn:
        assert contents.size_bound(conn, first) == 3
        assert contents.size_bound(conn, opened) == 5
    assert pfs.transact(lambda txn: commits.finish(txn, opened)).size == 2


def test_an_open_commit_that_many_write_to_keeps_few_layers(pfs: PfsService, a: Repo) -> None:
    opened = pfs.transact(lambda txn: commits.start(txn, Branch(a, "master")))
    for number in range(120):
        entry = (f"/{number:03}", "default", pfs.chunks.store([b"%d" % number]))
        pfs.transact(partial(contents.add_layer, info=opened, entries=[entry]))
    with pfs.db.read() as conn:
        assert len(contents.diff_layers(conn, opened)) <= 25
    assert len(tree(pfs, opened.commit)) == 120


def test_a_list_may_begin_at_a_time(pfs: PfsService, a: Repo) -> None:
    made = [write(pfs, a, {"/f": str(number).encode()}) for number in range(4)]
    with pfs.db.read() as conn:
        older = history.list_repo(conn, a, beyond=made[2].started)
        assert [info.seq for info in older] == [made[1].seq, made[0].seq]
        newer = history.list_repo(conn, a, reverse=True, beyond=made[1].started)
        assert [info.seq for info in newer] == [made[2].seq, made[3].seq]
        assert [info.seq for info in history.list_repo(conn, None)] == [info.seq for info in made[::-1]]
