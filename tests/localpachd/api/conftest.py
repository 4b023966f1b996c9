"""An empty pfs room for tests of the api room that need no server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.db import Database
from localpachd.pfs.service import Pfs
from localpachd.storage.chunks import Chunks


@pytest.fixture
def engine_pfs(tmp_path: Path) -> Iterator[Pfs]:
    """A Pfs on a new directory."""
    db, chunks = Database(tmp_path / "db.sqlite"), Chunks(tmp_path / "chunks")
    yield Pfs.open(db, chunks)
    chunks.close()
    db.close()
