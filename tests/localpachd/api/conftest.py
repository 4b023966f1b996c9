"""An empty pfs room for tests of the api room that need no server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.database import Database
from localpachd.pfs.pfs_service import PfsService
from localpachd.storage.chunk_store import ChunkStore


@pytest.fixture
def engine_pfs(tmp_path: Path) -> Iterator[PfsService]:
    """A Pfs on a new directory."""
    db, chunks = Database(tmp_path / "db.sqlite"), ChunkStore(tmp_path / "chunks")
    yield PfsService(db, chunks)
    chunks.close()
    db.close()
