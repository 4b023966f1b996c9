"""The places of pictures in a library of blocks that are divided and joined again, and of lone and long-named files."""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipelines.analysis.tracing.picture_files import PackFile, PictureFiles
from pipelines.client.deployment.deployment import deploy, make_repo
from pipelines.client.lineage import Lineage
from pipelines.client.repository import DeleteFile, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.library import ingest
from pipelines.library.picture_sources import PictureSource
from pipelines.specifications import pipeline_specs
from stages.decode.picture_normaliser import picture_id
from stages.files.packs import PackPicture
from stages.record import block_names, masks
from stages.record.framing import PAD, Framing, PictureSquare, Pixels
from stages.record.part_names import BUCKETS
from stages.record.pfs_names import escape_component
from tests.e2e.world import with_environment
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.library.picture_contents import earlier_blocks
from tests.stages.made_packs import former_pack, write_pixels

pytestmark = pytest.mark.late_alone

SIDE = 16


def pixels(seed: int) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (SIDE, SIDE, 3), np.uint8)


def paint(seed: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels(seed)).save(file, "PNG")
    return file.getvalue()


def id_of(seed: int) -> str:
    """The id of a picture that preprocess does not scale."""
    return picture_id(PictureSquare(pixels(seed), (SIDE, SIDE)))


class Library:
    """A library in blocks, and the commit that its pictures were put by."""

    def __init__(self, connection: Connection, directory: Path) -> None:
        self.connection = connection
        self._directory = directory

    def add(self, seeds: Sequence[int], prefix: str = "p", most_single: int = 0) -> str:
        found = []
        for seed in seeds:
            path = self._directory / f"{seed}.png"
            path.write_bytes(paint(seed))
            found.append(PictureSource(f"{prefix}/{seed}.png", path, path.stat().st_size))
        return ingest.add(self.connection, found, most_single=most_single).commit

    def put_by(self, name: str, seed: int, at: str) -> tuple[str, bool]:
        places = PictureFiles(Lineage(self.connection), "images", "preprocess", at)
        content = paint(seed)
        found = places.find(name, id_of(seed), BUCKETS)
        assert found is not None
        assert found[1].row.id == id_of(seed)
        return places.put_by(found[0], hashlib.sha256(content).hexdigest(), id_of(seed))


@pytest.fixture
def library(connection: Connection, tmp_path: Path) -> Library:
    """An empty library with preprocess, which makes small pictures, and blocks of up to 40 pictures."""
    (preprocess,) = (each for each in pipeline_specs.load() if each.name == "preprocess")
    deploy(connection, [with_environment(preprocess, IMAGE_SIZE=str(SIDE), PART="40")])
    make_repo(connection, masks.REPO)
    return Library(connection, tmp_path)


def test_a_picture_is_shown_from_packs_of_today_and_of_before(connection: Connection, tmp_path: Path) -> None:
    pictures = [PackPicture(id_of(seed), (), (SIDE, SIDE)) for seed in (1, 2)]
    write_pixels(tmp_path / "a", Framing(SIDE, PAD), pictures, [pixels(seed) for seed in (1, 2)])
    former = former_pack(pictures, np.stack([pixels(1), pixels(2)]))
    connection.client.create_repo("packs", project_name=connection.project)
    repo = Repository(connection, "packs")
    at = repo.write([PutFile("/a.pack", (tmp_path / "a").read_bytes()), PutFile("/a.npy", former)])
    lineage = Lineage(connection)
    for path in ("/a.pack", "/a.npy"):
        file = lineage.file("packs", path, at)
        assert file is not None
        pack = PackFile(lineage, file)
        row = pack.row(id_of(2))
        assert row is not None
        shown = np.asarray(Image.open(io.BytesIO(pack.thumbnail(row))))
        assert np.abs(shown.astype(int) - pixels(2)).mean() < 60, path


def test_blocks_of_earlier_versions_that_were_divided_and_joined(library: Library, wait_for_jobs: WaitForJobs) -> None:
    repo = Repository(library.connection, "images")

    def write(seeds: Sequence[int], put: Sequence[str], gone: Sequence[str] = ()) -> str:
        contents = {f"p/{seed}.png": paint(seed) for seed in seeds}
        edits = [PutFile(f"/{block}", content) for block, content in earlier_blocks(contents, *put).items()]
        return repo.write([*(DeleteFile(f"/{block_names.file_name(prefix)}") for prefix in gone), *edits])

    first = write(range(30), [""])
    second = write(range(60), ["0", "1"], [""])
    gone = write(range(30), [""], ["0", "1"])
    wait_for_jobs(first, second, gone)
    for at in (first, second, gone):
        assert library.put_by("p/7.png", 7, at) == (first, True)
    assert library.put_by("p/50.png", 50, second) == (second, True)


def test_a_picture_that_left_and_came_back(library: Library, wait_for_jobs: WaitForJobs) -> None:
    first = library.add(range(3))
    away = ingest.remove(library.connection, ["p/1.png"]).commit
    back = library.add([1])
    last = library.add([9])
    wait_for_jobs(first, away, back, last)
    assert library.put_by("p/1.png", 1, last) == (back, True)
    assert library.put_by("p/2.png", 2, last) == (first, True)
    assert library.put_by("p/1.png", 1, first) == (first, True)


def test_the_content_of_a_squashed_commit_is_that_of_its_child(library: Library, wait_for_jobs: WaitForJobs) -> None:
    first = library.add(range(3))
    second = library.add([7, 8])
    lone = library.add([50], most_single=9)
    other = library.add([51], most_single=9)
    last = library.add([9])
    wait_for_jobs(first, second, lone, other, last)
    assert library.put_by("p/50.png", 50, last) == (lone, True)
    for each in (second, lone):
        library.connection.client.squash_commit(each)
    assert library.put_by("p/7.png", 7, last) == (other, True)
    assert library.put_by("p/1.png", 1, last) == (first, True)
    assert library.put_by("p/50.png", 50, last) == (other, True)


def test_long_names_and_replaced_files(library: Library, wait_for_jobs: WaitForJobs) -> None:
    name = "ordner/" + "ü" * 200 + ".png"
    repo = Repository(library.connection, "images")
    first = repo.write([PutFile(f"/{escape_component(name)}", paint(1))])
    other = repo.write([PutFile("/a.png", paint(2))])
    again = repo.write([DeleteFile("/a.png"), PutFile("/a.png", paint(3))])
    wait_for_jobs(first, other, again)
    assert library.put_by(name, 1, again) == (first, True)
    assert library.put_by("a.png", 3, again) == (again, True)
    assert library.put_by("a.png", 2, other) == (other, True)
    assert (
        PictureFiles(Lineage(library.connection), "images", "preprocess", again).find("a.png", id_of(2), BUCKETS)
        is None
    )
