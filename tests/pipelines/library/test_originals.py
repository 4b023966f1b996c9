"""Sheets linked to the files of their pictures: lone files, members of blocks and archives, records of STL-10, and
files that the user has."""

import io
import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from PIL import Image

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.deployment.deployment import make_repo
from pipelines.client.server.connection import Connection
from pipelines.library import ingest, originals
from pipelines.library.picture_sources import PictureSource
from pipelines.library.result_sheets import ResultSheet
from stages import render
from stages.decode.stl10 import RECORD
from stages.quality.entry_answers import EntryAnswers, QueryAnswer, QueryMatch
from stages.record.origin import Origin
from stages.record.sources import Source as Seen
from tests.small_archives import zipped

pytestmark = pytest.mark.late_alone


def jpeg(colour: str) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (96, 96), colour).save(buffer, "JPEG")
    return buffer.getvalue()


RED = jpeg("red")
ODD = "holiday/é #1 & <b>.jpg"
RECORDS = np.random.default_rng(0).integers(0, 256, 3 * RECORD, np.uint8).tobytes()


@pytest.fixture
def commit(connection: Connection, tmp_path: Path) -> str:
    """A library with every kind of file; the commit of `images`."""
    for repo in ("images", "masks"):
        make_repo(connection, repo)
    contents = {
        "alone.jpg": b"alone",
        "pack.zip": zipped({"a": jpeg("blue"), "b": b"b"}),
        "stl10/train_X.bin": RECORDS,
        ODD: b"odd",
    }
    (tmp_path / "given").mkdir()
    sources = []
    for number, (name, content) in enumerate(contents.items()):
        path = tmp_path / "given" / str(number)
        path.write_bytes(content)
        sources.append(PictureSource(name, path, len(content)))
    ingest.add(connection, sources)
    for n in range(3):
        (tmp_path / "given" / f"in-block-{n}").write_bytes(b"%d" % n)
    inside = [PictureSource(f"block/{n}.jpg", tmp_path / "given" / f"in-block-{n}", 1) for n in range(3)]
    ingest.add(connection, inside, most_single=0)
    return CommitWriter(connection, "images").newest()


def sheet(directory: Path, *names: Sequence[str]) -> ResultSheet:
    """A sheet of a query, which is called alone.jpg, and a neighbour for each list of names."""
    matches = tuple(
        QueryMatch(f"{n:064}", n / 8, tuple(Seen(name, "0" * 64) for name in each), RED) for n, each in enumerate(names)
    )
    answer = QueryAnswer("f" * 64, (Seen("alone.jpg", "0" * 64),), RED, matches)
    render.write("mine", EntryAnswers("mine", len(names), Origin("a" * 64, "pad"), "euclidean", (answer,)), directory)
    return ResultSheet("mine", directory)


def links(page: Path) -> dict[str, Path]:
    """The files to which the names on a page lead, by name; each must be there."""
    found = re.findall(r'<li><bdi><a href="(.*?)">(.*?)</a></bdi></li>', page.read_text("utf-8"))
    files = {unescape(name): page.parent / unquote(unescape(link)) for link, name in found}
    assert all(file.is_file() for file in files.values())
    return files


def test_pictures_in_files_blocks_and_archives_are_fetched_and_linked(
    connection: Connection, commit: str, tmp_path: Path
) -> None:
    results = tmp_path / "my results"
    names = ["alone.jpg", "block/1.jpg", "pack.zip/a", ODD, "stl10/train_X.bin/000002", "gone.jpg", "pack.zip/gone"]
    made = sheet(results / "mine", names[:2], *([name] for name in names[2:]))
    assert originals.names([made]) == sorted(names)
    (tmp_path / "scratch").mkdir()
    done: list[int] = []
    found = originals.fetch(
        connection, commit, originals.names([made]), results / "originals", tmp_path / "scratch", done.append
    )
    assert sum(done) == len(names)
    contents = {name: path.read_bytes() for name, path in found.items()}
    with Image.open(io.BytesIO(contents.pop("stl10/train_X.bin/000002"))) as record:
        stored = np.frombuffer(RECORDS, np.uint8)[2 * RECORD :].reshape(3, 96, 96)
        assert (record.format, np.asarray(record).tolist()) == ("PNG", stored.transpose(2, 1, 0).tolist())
    assert contents == {"alone.jpg": b"alone", "block/1.jpg": b"1", "pack.zip/a": jpeg("blue"), ODD: b"odd"}

    assert originals.link([made], found) == 5
    assert links(made.directory / "index.html") == {
        name: made.directory / "../originals" / path.relative_to(results / "originals") for name, path in found.items()
    }
    text = (made.directory / "index.html").read_text("utf-8")
    pictures = re.findall(r'<a href="([^"]*)"><img [^>]*></a>', text)
    assert len(pictures) == 4, "a tile of several files leads to the first"
    assert text.partition('<ol class="matches">')[0].count("../originals") == 0, "the query is not in the library"


def test_files_that_the_user_has_are_linked_and_not_copied(tmp_path: Path) -> None:
    made = sheet(tmp_path / "results" / "mine", ["trip/a.jpg"], ["trip/b.jpg"])
    (tmp_path / "pictures" / "trip").mkdir(parents=True)
    (tmp_path / "pictures" / "trip" / "a.jpg").write_bytes(RED)
    found = originals.here(tmp_path / "pictures", originals.names([made]))
    assert originals.link([made], found) == 1
    assert {name: file.resolve() for name, file in links(made.directory / "index.html").items()} == {
        "trip/a.jpg": (tmp_path / "pictures" / "trip" / "a.jpg").resolve()
    }


def test_a_name_cannot_lead_out_of_the_directory(connection: Connection, tmp_path: Path) -> None:
    for repo in ("images", "masks"):
        make_repo(connection, repo)
    path = tmp_path / "evil"
    path.write_bytes(b"evil")
    ingest.add(connection, [PictureSource("../../outside.jpg", path, 4)])
    head = CommitWriter(connection, "images").newest()
    (tmp_path / "scratch").mkdir()
    found = originals.fetch(
        connection, head, ["../../outside.jpg"], tmp_path / "to" / "originals", tmp_path / "scratch"
    )
    (file,) = found.values()
    assert file.resolve().is_relative_to((tmp_path / "to" / "originals").resolve())
    assert file.read_bytes() == b"evil"
    assert originals.here(tmp_path / "to", ["../evil", str(path)]) == {}
