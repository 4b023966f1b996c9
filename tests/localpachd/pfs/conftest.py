"""A real pfs room on a real database and chunk store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.db import Database
from localpachd.pfs import repos
from localpachd.pfs.entities import Repo
from localpachd.pfs.service import Pfs
from localpachd.storage.chunks import Chunks


@pytest.fixture
def pfs(tmp_path: Path) -> Iterator[Pfs]:
    db = Database(tmp_path / "pachd.sqlite")
    chunks = Chunks(tmp_path / "chunks")
    yield Pfs.open(db, chunks)
    chunks.close()
    db.close()


@pytest.fixture
def a(pfs: Pfs) -> Repo:
    repo = Repo("default", "a")
    pfs.transact(lambda txn: repos.create(txn, repo))
    return repo
