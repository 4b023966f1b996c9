"""Blocks cut again for another number of pictures."""

from pathlib import Path

import pytest

from pipelines.client.connection import Connection
from pipelines.client.repository import Put, Remove, Repository
from pipelines.library import blocks, ingest
from pipelines.library.pictures import Source
from pipelines.library.recutting import recut
from pipelines.library.snapshots import block_path
from stages import blocknames

NAMES = [f"photos/{number}.jpg" for number in range(90)]


class Library:
    """Pictures in blocks, and one in a file of its own."""

    def __init__(self, connection: Connection, directory: Path) -> None:
        self.connection = connection
        self.repo = Repository(connection, "images")
        connection.client.create_repo("images", project_name=connection.project)
        sources = [self._file(directory, name) for name in NAMES]
        ingest.add(connection, sources, most_single=0)
        ingest.add(connection, [self._file(directory, "lone.jpg")])

    def _file(self, directory: Path, name: str) -> Source:
        path = directory / name.replace("/", "-")
        path.write_bytes(f"picture {name}".encode() * 10)
        return Source(name, path, path.stat().st_size)

    def files(self) -> dict[str, bytes]:
        return dict(self.repo.read_all("/*"))

    def prefixes(self) -> set[str]:
        return {found for path in self.repo.list() if (found := blocknames.prefix_of(path.strip("/"))) is not None}


@pytest.fixture
def library(connection: Connection, tmp_path: Path) -> Library:
    return Library(connection, tmp_path)


def test_blocks_are_those_that_add_would_make(library: Library) -> None:
    before = library.files()
    assert library.prefixes() == {""}
    put: list[int] = []
    for limit in (7, 40, 3, 400):
        cut = recut(library.connection, limit, put.append)
        assert cut is not None
        assert library.prefixes() == blocks.divide(NAMES, limit=limit).keys()
        assert (cut.made, recut(library.connection, limit)) == (len(library.prefixes()), None)
    assert library.files() == before
    assert sum(put) == 4 * len(NAMES)


def test_blocks_of_the_right_size_stay(library: Library) -> None:
    recut(library.connection, 12)
    prefix, *_ = sorted(library.prefixes())
    library.repo.write([Remove(block_path(each)) for each in library.prefixes() - {prefix}])
    before = library.files()
    cut = recut(library.connection, 12)  # alone, it is the whole tree
    assert cut is not None and (cut.gone, cut.made) == (1, 1)
    assert library.prefixes() == {""}
    assert library.files()["/lone.jpg"] == before["/lone.jpg"]
    assert before[block_path(prefix)] == library.files()[block_path("")]


def test_only_other_blocks_are_put(library: Library) -> None:
    leaves = blocks.divide(NAMES, limit=24)
    recut(library.connection, 24)
    finer = blocks.divide(NAMES, limit=23)
    cut = recut(library.connection, 23)
    changed = finer.keys() - leaves.keys()
    assert (0 if cut is None else cut.made) == len(changed)
    assert library.prefixes() == finer.keys()


def test_a_library_without_blocks_stays(connection: Connection) -> None:
    connection.client.create_repo("images", project_name=connection.project)
    assert recut(connection, 10) is None
    Repository(connection, "images").write([Put("/a.jpg", b"a")])
    assert recut(connection, 10) is None
    assert len(list(connection.client.list_commit("images", project_name=connection.project))) == 1
