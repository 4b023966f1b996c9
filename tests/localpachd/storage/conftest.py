"""A database and a chunk store on disk, shared by the tests of a module: layers and chunks never change, so the tests
do not interfere."""

from collections.abc import Iterator

import pytest

from localpachd.database import Database
from localpachd.storage.chunk_store import ChunkStore


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = Database(tmp_path_factory.mktemp("db") / "localpachd.sqlite")
    yield database
    database.close()


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    store = ChunkStore(tmp_path_factory.mktemp("chunks"))
    yield store
    store.close()
