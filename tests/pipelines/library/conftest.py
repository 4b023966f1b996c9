"""An empty library without pipelines."""

from pathlib import Path

import pytest

from pipelines.client.server.connection import Connection
from stages.record import part_names
from tests.pipelines.library.filled_library import Place


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of at most 40 pictures in place of 400."""
    monkeypatch.setattr(part_names, "PART", 40)


@pytest.fixture
def place(connection: Connection, tmp_path: Path, small_blocks: None) -> Place:
    (tmp_path / "from").mkdir()
    for repo in ("images", "masks"):
        connection.client.create_repo(repo, project_name=connection.project)
    return Place(connection, tmp_path / "from")


@pytest.fixture(autouse=True)
def _cache(own_cache: None) -> None:
    """Lists of blocks are kept for one test."""
