"""`lookalike classify add` of pictures that the library has: they get labels, and nothing is stored again; and labels
for evaluation alone."""

import zipfile
from pathlib import Path

import pytest
from PIL import Image

from pipelines.analysis.measurement import evaluation
from pipelines.client.commit_history import CommitHistory
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from stages.record import label_files
from tests.command import Command

pytestmark = [pytest.mark.late_alone, pytest.mark.usefixtures("own_cache")]


def draw(directory: Path, *names: str) -> None:
    """Pictures, each with a colour of its own."""
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), tuple(path.stem.encode()[:3].ljust(3))).save(path)


def labels(connection: Connection) -> dict[str, str]:
    """The labels to train on."""
    files = evaluation.labels_files(connection)
    return label_files.unite((name, each) for name, each in files.items() if label_files.is_for_training(name)).of


def test_pictures_of_the_library_get_labels_only(
    as_user: Connection, preprocessing: Connection, command: Command
) -> None:
    draw(command.directory, "pets/cat/one.png", "pets/dog/two.png", "pets/dog/six.png", "holiday/sea.png")
    with zipfile.ZipFile(command.directory / "pets" / "more.zip", "w") as archive:
        archive.write(command.directory / "pets" / "dog" / "six.png", "cat/seven.png")
    command.says("add", "pets", "holiday")
    images = CommitHistory(as_user).commits("images")
    said = command.says("classify", "add", "pets")
    assert "4 files in the library already: they get labels only\n" in said
    assert "4 of 4 pictures with 2 labels: cat 2, dog 2\n" in said
    pets = {"pets/cat/one.png": "cat", "pets/dog/six.png": "dog", "pets/dog/two.png": "dog"}
    assert labels(as_user) == pets | {"pets/more.zip/cat/seven.png": "cat"}
    command.says("classify", "add", "pets")
    assert CommitHistory(as_user).commits("images") == images

    draw(command.directory, "new/sea/sea.png", "new/sea/new.png", "new/cat/one.png")
    said = command.says("classify", "add", "new")
    assert "2 files in the library already: they get labels only\n" in said and "put 1 file into images" in said
    assert labels(as_user).items() >= {"holiday/sea.png": "sea", "new/sea/new.png": "sea"}.items()
    Image.new("RGB", (8, 8)).save(command.directory / "new" / "sea" / "new.png")  # changed: put again
    assert "put 1 file into images" in command.says("classify", "add", "new")


def test_classifiers_see_only_labels_that_they_were_given(as_user: Connection, command: Command) -> None:
    for repo in ("images", "labels"):
        as_user.client.create_repo(repo, project_name=as_user.project)
    (command.directory / "mine.csv").write_text("source,label\na.png,cat\n")
    command.says("classify", "add", "--labels", "mine.csv", "--no-wait")
    assert "these labels are there already" in command.says("classify", "add", "--labels", "mine.csv")
    evaluation.put(as_user, {"theirs.csv": b"source,label\nb.png,dog\n", "folders.csv": b"source,label\nc.png,trip\n"})
    assert labels(as_user) == {"a.png": "cat"}
    assert [*evaluation.labels_files(as_user)] == ["evaluate/folders.csv", "evaluate/theirs.csv", "mine.csv"]

    before = {"theirs.csv": b"source,label\nb.png,dog\n"}
    assert (evaluation.trained_on(as_user, before), evaluation.put(as_user, before)) == ([], "")
    changed = {"mine.csv": b"source,label\na.png,kitten\n"}
    assert evaluation.trained_on(as_user, changed) == ["mine.csv"]
    assert evaluation.put(as_user, changed)
    assert labels(as_user) == {}

    Repository(as_user, "labels").write([PutFile("/folders.csv", b"source,label\nd.png,old\n")])  # of earlier versions
    assert labels(as_user) == {}
    evaluation.put(as_user, {"folders.csv": b"source,label\nd.png,old\n"})
    assert "folders.csv" not in evaluation.labels_files(as_user)
    Repository(as_user, "labels").write(evaluation.removals(as_user, "theirs.csv"))
    assert [*evaluation.labels_files(as_user)] == ["evaluate/folders.csv", "evaluate/mine.csv"]
