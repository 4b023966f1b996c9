"""Sweeping while others write, read and delete."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localpachd.db import Database
from localpachd.pfs import commits, contents, modify, repos
from localpachd.pfs.service import Pfs
from localpachd.pfs.staging import Addition
from localpachd.pfs.values import Commit, Repo
from localpachd.storage import chunks
from localpachd.storage.chunks import SMALL, Chunks
from localpachd.storage.filesets import DEFAULT_TAG
from localpachd.storage.gc import Sweeper, Swept


def test_nobody_who_is_at_work_loses_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "RENEW", 0.0)  # no two files here are the same, so nothing is put a second time
    pfs = Pfs(Database(tmp_path / "state.sqlite"), Chunks(tmp_path / "chunks"))
    sweeper = Sweeper(pfs.db, pfs.chunks)
    over = threading.Event()

    def put(repo: Repo, noise: random.Random) -> dict[str, bytes]:
        files = {f"/{number}": noise.randbytes(noise.choice((10, 1000, SMALL))) for number in range(3)}
        target = Commit(repo, branch="master")
        modify.modify(
            pfs,
            target,
            (Addition(path, DEFAULT_TAG, pfs.chunks.store([data])) for path, data in files.items()),
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

    def sweep() -> Swept:
        swept = Swept(0, 0)
        while not over.is_set():
            now = sweeper.sweep()
            swept = Swept(swept.layers + now.layers, swept.chunks + now.chunks)
        return swept

    with ThreadPoolExecutor() as pool:
        sweeping = pool.submit(sweep)
        try:
            assert all(pool.map(work, range(4)))
        finally:
            over.set()
        swept = sweeping.result()
    late = [sweeper.sweep(), sweeper.sweep()]
    assert swept.layers + sum(each.layers for each in late) == 4 * 12
    assert swept.chunks + sum(each.chunks for each in late) == 4 * 12 * 3
    assert len(list(pfs.chunks.hashes())) == 4 * 3
    pfs.chunks.close()
    pfs.db.close()
