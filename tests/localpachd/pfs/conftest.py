"""A real pfs room on a real database and chunk store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.database import Database
from localpachd.pfs import repos
from localpachd.pfs.pfs_entities import Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.storage.chunk_store import ChunkStore


@pytest.fixture
def pfs(tmp_path: Path) -> Iterator[PfsService]:
    db = Database(tmp_path / "pachd.sqlite")
    chunks = ChunkStore(tmp_path / "chunks")
    yield PfsService(db, chunks)
    chunks.close()
    db.close()


@pytest.fixture
def a(pfs: PfsService) -> Repo:
    repo = Repo("default", "a")
    pfs.transact(lambda txn: repos.create(txn, repo))
    return repo
