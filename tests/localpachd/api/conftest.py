"""An empty pfs room for the parts of api that need one and no server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.db import Database
from localpachd.pfs.service import Pfs
from localpachd.storage.chunks import Chunks


@pytest.fixture
def engine_pfs(tmp_path: Path) -> Iterator[Pfs]:
    """Pfs on a directory of its own."""
    db, chunks = Database(tmp_path / "db.sqlite"), Chunks(tmp_path / "chunks")
    yield Pfs.open(db, chunks)
    chunks.close()
    db.close()
