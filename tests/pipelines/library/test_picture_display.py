"""Showing pictures: files, records and pictures of the library, on a terminal and as PNG."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import ingest, picture_display, picture_sources, snapshots
from stages.decode import stl10_records
from stages.decode.stl10 import RECORD
from stages.record import masks
from tests.pipelines.library.picture_contents import earlier_blocks

pytestmark = pytest.mark.late_alone

RED, BLUE = (200, 20, 20), (20, 20, 200)
RECORDS = np.resize(np.arange(251, dtype=np.uint8), 3 * RECORD).tobytes()


def picture(colour: tuple[int, int, int], kind: str = "PNG", size: tuple[int, int] = (40, 20)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, kind)
    return file.getvalue()


def colour_of(shown: Image.Image) -> tuple[int, ...]:
    return tuple(np.asarray(shown).reshape(-1, 3).mean(axis=0).round().astype(int).tolist())


def test_a_file_on_disk(tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_bytes(picture(RED, size=(40, 30)))
    shown = picture_display.from_disk(str(tmp_path / "a.dat"))
    assert shown is not None
    assert (shown.size, colour_of(shown)) == ((40, 30), RED)
    assert picture_display.from_disk(str(tmp_path / "none.png")) is None
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(LookalikeError, match="is not a picture that can be shown"):
        picture_display.from_disk(str(tmp_path / "text.png"))


def test_a_record_of_a_file_on_disk(tmp_path: Path) -> None:
    file = tmp_path / "unlabeled_X.bin"
    file.write_bytes(RECORDS)
    expected = stl10_records.upright(RECORDS)
    for number in range(3):
        shown = picture_display.from_disk(f"{file}/{number:06}")
        assert shown is not None
        assert np.array_equal(np.asarray(shown), expected[number])
    with pytest.raises(LookalikeError, match="has 3 pictures, counted from 0: none is number 3"):
        picture_display.from_disk(f"{file}/000003")
    with pytest.raises(LookalikeError, match=r"a file of 3 pictures: name one of them, .*X\.bin/000000"):
        picture_display.from_disk(str(file))


def test_library_pictures_are_found_by_the_names_on_sheets(connection: Connection, tmp_path: Path) -> None:
    for each in (snapshots.REPO, masks.REPO):
        connection.client.create_repo(each, project_name=connection.project)
    for name in ("a", "b"):
        (tmp_path / "trip" / name).mkdir(parents=True)
        (tmp_path / "trip" / name / "[1] ü.png").write_bytes(picture(RED if name == "a" else BLUE))
    with tarfile.open(tmp_path / "more.tar", "w") as archive:
        archive.add(tmp_path / "trip" / "b", "inside")
    inside = "inside/[1] ü.png"
    packed = "packed.tar"
    with tarfile.open(tmp_path / packed, "w") as archive:
        archive.add(tmp_path / "trip" / "a", "inside")
    (tmp_path / "train_X.bin").write_bytes(RECORDS)
    sources = picture_sources.find([tmp_path / "trip", tmp_path / "more.tar", tmp_path / "train_X.bin"]).sources
    ingest.add(connection, sources[:2], most_single=0)
    ingest.add(connection, sources[2:])
    images = Repository(connection, snapshots.REPO)
    earlier = {packed: (tmp_path / packed).read_bytes(), "trip/b/[1] ü.png": picture(RED)}
    for block, content in earlier_blocks(earlier, "0", "1").items():
        images.write([PutFile(f"/{block}", content)])
        hidden = PutFile(masks.path(block), masks.content(["trip/b/[1] ü.png"]))
        Repository(connection, masks.REPO).write([hidden])
    images.write([PutFile("/by hand/c.png", picture(BLUE))])
    for name, colour in (
        ("trip/a/[1] ü.png", RED),
        ("trip/b/[1] ü.png", BLUE),
        ("more.tar/inside/[1] ü.png", BLUE),
        (f"{packed}/{inside}", RED),
        ("by hand/c.png", BLUE),
    ):
        assert colour_of(picture_display.from_library(connection, name)) == colour
    assert picture_display.from_library(connection, "train_X.bin/000001").size == (256, 256)
    for name in ("trip/a", "trip/c.png", "more.tar/none.png", f"{packed}/none.png", "x"):
        with pytest.raises(LookalikeError, match="neither a file .* nor a picture of that name"):
            picture_display.from_library(connection, name)


def test_a_terminal_gets_two_pixels_for_each_character() -> None:
    two = Image.fromarray(np.array([[RED, RED], [BLUE, BLUE]], np.uint8))
    printed = io.StringIO()
    console = Console(file=printed, force_terminal=True, color_system="truecolor", width=10)
    assert picture_display.can_show(console)
    console.print(picture_display.half_blocks(two, console.width), end="")
    assert printed.getvalue().count("\x1b[38;2;200;20;20;48;2;20;20;200m▀") == 2
    assert not picture_display.can_show(Console(file=io.StringIO()))
    wide = picture_display.half_blocks(Image.new("RGB", (4000, 1000)), 40)
    assert {len(line) for line in wide.plain.splitlines()} == {40}
    assert len(wide.plain.splitlines()) == 5


def test_png_files_are_named_after_their_pictures(tmp_path: Path) -> None:
    path = picture_display.write_png(Image.new("RGB", (2, 2)), tmp_path / "new", 3, "../a b/ü.bin/000001")
    assert path == tmp_path / "new" / "3-..-a-b-.bin-000001.png"
    assert Image.open(path).size == (2, 2)
