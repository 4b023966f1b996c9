"""Sweeping while others write, read and delete."""

import random
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from localpachd.database import Database
from localpachd.pfs import commit_removal, commits, contents, repos
from localpachd.pfs.files import file_modification
from localpachd.pfs.files.file_modification import FileAddition, FileChange, FileRemoval
from localpachd.pfs.pfs_entities import Commit, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.upkeep.retention import merge_hidden
from localpachd.storage import garbage_collector
from localpachd.storage.chunk_store import SMALL, ChunkStore
from localpachd.storage.filesets import DEFAULT_TAG
from localpachd.storage.garbage_collector import GarbageCollector, SweepCounts, sweep


def test_work_in_progress_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collector, "KEPT", 0.0)  # the trash is deleted at once
    pfs = PfsService(Database(tmp_path / "state.sqlite"), ChunkStore(tmp_path / "chunks"))
    sweeper = GarbageCollector(pfs.db, pfs.chunks)
    over = threading.Event()

    def put(repo: Repo, noise: random.Random) -> dict[str, bytes]:
        files = {f"/{number}": noise.randbytes(noise.choice((10, 1000, SMALL))) for number in range(3)}
        target = Commit(repo, branch="master")
        file_modification.modify(
            pfs, target, (FileAddition(path, DEFAULT_TAG, pfs.chunks.store([data])) for path, data in files.items())
        )
        return files

    def read(repo: Repo) -> dict[str, bytes]:
        with pfs.chunks.uses.one(), pfs.db.read() as conn:
            info = commits.resolve(conn, Commit(repo, branch="master"))
            found = list(contents.fileset(conn, info).walk())
            return {file.path: b"".join(pfs.chunks.read(file.content)) for file in found}

    def work(number: int) -> bool:
        repo, noise = Repo("default", f"repo-{number}"), random.Random(number)
        for _ in range(12):
            pfs.transact(lambda txn: repos.create(txn, repo))
            if put(repo, noise) != read(repo):
                return False
            pfs.transact(lambda txn: repos.delete(txn, repo))
        pfs.transact(lambda txn: repos.create(txn, repo))
        return put(repo, noise) == read(repo)

    def sweep_on() -> SweepCounts:
        swept = SweepCounts(0, 0)
        while not over.is_set():
            now = sweeper.sweep()
            swept = SweepCounts(swept.layers + now.layers, swept.chunks + now.chunks)
        return swept

    with ThreadPoolExecutor() as pool:
        sweeping = pool.submit(sweep_on)
        try:
            assert all(pool.map(work, range(4)))
        finally:
            over.set()
        swept = sweeping.result()
    late = [sweeper.sweep(), sweeper.sweep(), sweeper.sweep()]
    assert swept.layers + sum(each.layers for each in late) == 4 * 12
    assert swept.chunks + sum(each.chunks for each in late) == 4 * 12 * 3
    assert len(list(pfs.chunks.hashes())) == 4 * 3
    pfs.chunks.close()
    pfs.db.close()


def test_content_of_a_squashed_history_is_swept(pfs: PfsService, a: Repo) -> None:
    files = {f"/{number}": random.Random(number).randbytes(SMALL) for number in range(20)}
    put(pfs, a, files)
    made = [put(pfs, a, {"/0": random.Random(100 + change).randbytes(SMALL)}) for change in range(3)]
    removed = put(pfs, a, {"/1": None})
    files |= {"/0": random.Random(102).randbytes(SMALL)}
    del files["/1"]
    assert merge_hidden(pfs.db) == 0  # older commits still read the hidden files
    sweep(pfs.db, pfs.chunks)
    assert len(list(pfs.chunks.hashes())) == 23
    with pfs.db.read() as conn:
        history = [row[0] for row in conn.execute("SELECT id FROM commits ORDER BY seq")]
    assert history[-4:] == [*(each.id for each in made), removed.id]
    for id_ in history[:-1]:
        pfs.transact(partial(commit_removal.squash_set, commit_set=id_))
    assert merge_hidden(pfs.db) == 1
    assert merge_hidden(pfs.db) == 0
    sweep(pfs.db, pfs.chunks)
    assert len(list(pfs.chunks.hashes())) == 19
    with pfs.db.read() as conn:
        found = contents.fileset(conn, commits.resolve(conn, removed)).walk()
        assert {file.path: b"".join(pfs.chunks.read(file.content)) for file in found} == files


def put(pfs: PfsService, repo: Repo, files: Mapping[str, bytes | None]) -> Commit:
    """One commit with these files, or without those that are None."""
    target = Commit(repo, branch="master")
    changes: list[FileChange] = [FileRemoval(path, DEFAULT_TAG) for path in files]
    changes += [
        FileAddition(path, DEFAULT_TAG, pfs.chunks.store([data])) for path, data in files.items() if data is not None
    ]
    file_modification.modify(pfs, target, changes)
    with pfs.db.read() as conn:
        return commits.resolve(conn, target).commit
