"""The data set STL-10: downloading, splitting and putting it, and generated files like its own."""

import csv
import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.kit.stl10_pieces import write_stl10
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import snapshots
from pipelines.library.datasets import stl10
from pipelines.library.datasets.downloads import RemoteFile
from stages.backbone.photographs import PHOTOGRAPHS
from stages.datum.contract import DatumInput
from stages.decode.decoder_processes import DecoderProcesses
from stages.decode.picture_reader import DecodedPicture, read
from stages.decode.stl10 import RECORD
from stages.files import blocks
from stages.record import masks
from stages.record.framing import Framing
from tests.command import Command
from tests.pipelines.library import picture_contents

pytestmark = pytest.mark.late_alone


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files like STL-10's: 500 unlabelled records, 20 for training, 10 for testing."""
    directory = tmp_path_factory.mktemp("stl10") / "stl10_binary"
    write_stl10(directory, 500, (20, 10))
    return directory


def records(path: Path) -> list[bytes]:
    content = path.read_bytes()
    return [content[begin : begin + RECORD] for begin in range(0, len(content), RECORD)]


def test_generated_files_are_equal_for_equal_seeds_and_hold_copies(place: Path, tmp_path: Path) -> None:
    write_stl10(tmp_path / "again", 500, (20, 10))
    write_stl10(tmp_path / "other", 500, (20, 10), seed=1)
    for path in place.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    made = records(place / stl10.UNLABELLED)
    assert len(made) == 500
    assert 485 <= len(set(made)) < 500
    assert len(set(made) & set(records(tmp_path / "other" / stl10.UNLABELLED))) < 5


def test_a_split_is_a_function_of_its_seed_and_records_keep_their_names(place: Path) -> None:
    once = stl10.split(place, 0.9, 0)
    assert once == stl10.split(place, 0.9, 0)
    assert (len(once.library), len(once.queries)) == (450, 50)
    everything = {each.name: each for each in once.library + once.queries}
    assert sorted(everything) == [f"unlabeled_X.bin/{number:06}" for number in range(500)]
    other = stl10.split(place, 0.75, 3)
    assert {each.name: each for each in other.library + other.queries} == everything
    assert set(other.queries) != set(once.queries)
    for source in once.queries[:3]:
        assert b"".join(blocks.content(source.span)) == records(source.path)[int(source.name[-6:])]


@pytest.mark.parametrize("share", [0, 1, 0.9999, 2])
def test_a_split_without_library_or_queries_is_refused(share: float, place: Path) -> None:
    with pytest.raises(LookalikeError, match="leaves the library or the queries empty"):
        stl10.split(place, share, 0)


def test_labels_use_the_names_under_which_labelled_files_are_added(place: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(stl10.labels(place).decode())))
    with DecoderProcesses(1) as decoders:
        found = [
            each.source.path
            for name in ("train_X.bin", "test_X.bin")
            for each in read(DatumInput("images", place / name, name, ""), Framing(96, "crop"), decoders)
            if isinstance(each, DecodedPicture)
        ]
    assert [row["source"] for row in rows] == found
    given = (place / "train_y.bin").read_bytes() + (place / "test_y.bin").read_bytes()
    assert [int(row["label"]) for row in rows] == list(given)
    assert [row["name"] for row in rows] == [list(PHOTOGRAPHS)[label - 1] for label in given]


def test_labels_that_do_not_fit_are_refused(place: Path, tmp_path: Path) -> None:
    for path in place.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "test_y.bin").write_bytes(b"\1")
    with pytest.raises(LookalikeError, match="does not fit"):
        stl10.labels(tmp_path)


def test_the_word_means_the_data_set_and_a_path_means_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nothing = (None, None)
    assert stl10.names_stl10(["stl10"], None, nothing)
    assert not stl10.names_stl10(["./stl10", "a.png"], None, nothing)
    (tmp_path / "stl10").mkdir()
    with pytest.raises(LookalikeError, match=r"use \./stl10 for the path"):
        stl10.names_stl10(["stl10"], None, nothing)
    assert stl10.names_stl10(["stl10"], tmp_path, nothing)
    with pytest.raises(LookalikeError, match="added alone"):
        stl10.names_stl10(["stl10", "a.png"], None, nothing)
    for options in ((tmp_path, nothing), (None, (0.5, None)), (None, (None, 0))):
        with pytest.raises(LookalikeError, match="lookalike add stl10"):
            stl10.names_stl10(["a.png"], *options)


def archive(place: Path, directory: Path, *, without: str = "") -> RemoteFile:
    """An archive like STL-10's in a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "stl10_binary.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as file:
        for each in sorted(place.iterdir()):
            if each.name != without:
                file.add(each, f"stl10_binary/{each.name}")
    content = path.read_bytes()
    return RemoteFile("http://127.0.0.1:1/", path.name, len(content), hashlib.md5(content).hexdigest())


def test_a_manually_downloaded_archive_is_extracted(place: Path, tmp_path: Path) -> None:
    remote = archive(place, tmp_path)
    assert stl10.find(tmp_path) is None
    where = stl10.fetch(tmp_path, remote=remote)
    assert stl10.find(tmp_path) == where
    assert stl10.find(where) == where
    assert {path.name: path.read_bytes() for path in where.iterdir()} == {
        path.name: path.read_bytes() for path in place.iterdir()
    }


def test_a_different_archive_is_refused(place: Path, tmp_path: Path) -> None:
    remote = archive(place, tmp_path, without="test_y.bin")
    with pytest.raises(LookalikeError, match=r"lacks test_y\.bin"):
        stl10.fetch(tmp_path, remote=remote)
    path = tmp_path / remote.name
    path.write_bytes(path.read_bytes()[:-100000] + bytes(100000))
    with pytest.raises(LookalikeError, match=r"is damaged \("):
        stl10.fetch(tmp_path, remote=remote)


@pytest.fixture
def repos(connection: Connection) -> Iterator[Connection]:
    for name in (snapshots.REPO, masks.REPO, "queries"):
        connection.client.create_repo(name, project_name=connection.project)
    yield connection


def test_another_split_moves_pictures_and_keeps_none_in_both(repos: Connection, place: Path) -> None:
    for number, seed in enumerate((0, 1)):
        split, labels = stl10.split(place, 0.9, seed), stl10.labels(place)
        done = stl10.add(repos, split, labels)
        assert len(done) == 2 + number
        packed = [picture_contents.untar(content) for _, content in Repository(repos, "queries").read_all("/stl10/*")]
        assert {name for each in packed for name in each} == {each.name for each in split.queries}
        assert all(0 < len(each) <= blocks.LIMIT for each in packed)
        assert set(picture_contents.library(repos)) == {each.name for each in split.library}
        assert Repository(repos, "labels").read("/stl10.csv") == labels


def test_a_block_of_records_reads_as_they_do(repos: Connection, place: Path, tmp_path: Path) -> None:
    stl10.add(repos, stl10.split(place, 0.9, 0), stl10.labels(place))
    found: dict[str, str] = {}
    for path, content in Repository(repos, "images").read_all("/*"):
        (tmp_path / "block").write_bytes(content)
        with DecoderProcesses(1) as decoders:
            for each in read(
                DatumInput("images", tmp_path / "block", path.strip("/"), ""), Framing(96, "crop"), decoders
            ):
                assert isinstance(each, DecodedPicture)
                found[each.source.path] = each.source.sha256
    whole = records(place / stl10.UNLABELLED)
    assert len(found) == 450
    assert all(hashlib.sha256(whole[int(name[-6:])]).hexdigest() == digest for name, digest in found.items())


def test_adding_the_data_set_names_parameters_that_are_not_the_experiments_and_changes_none(
    preprocessing: Connection, as_user: Connection, command: Command, tmp_path: Path
) -> None:
    write_stl10(tmp_path / "data", 20, (1, 1))
    deployed = {name: info.version for name, info in ProjectJobs(preprocessing).pipelines().items()}
    said = command.says("add", "stl10", "--data-dir", tmp_path / "data", "--no-wait")
    for name in ("preprocess", "preprocess-queries"):
        assert f"{name} has IMAGE_SIZE=224, the original experiment IMAGE_SIZE=96\n" in said
        assert f"{name} has FIT=pad, the original experiment FIT=crop\n" in said
    assert "with --overlay stl10 in a library of its own, as `make experiment` does" in " ".join(said.split())
    assert {name: info.version for name, info in ProjectJobs(preprocessing).pipelines().items()} == deployed
