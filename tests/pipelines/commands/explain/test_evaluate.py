"""`lookalike evaluate` with the real stages that evaluate, on an index made beforehand."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from pipelines.analysis.measurement import evaluation
from pipelines.analysis.measurement.evaluation import NOTHING
from pipelines.client.deployment.deployment import deploy
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import DeleteFile, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.specifications import pipeline_specs
from tests.command import Command
from tests.pipelines.stand_ins import shell_spec
from tests.pipelines.tcp_proxy import outlasts
from tests.stages import picture_indexes
from tests.stages.picture_indexes import id_of

pytestmark = pytest.mark.late_alone

COPY = 'cp -r "${LOCALPACHD_PFS:-/pfs}"/images/. "${LOCALPACHD_PFS:-/pfs}/out"'
FOLDERS = ("cat", "dog", "ape")


def library(pictures: int = 24) -> dict[str, npt.NDArray[np.float32]]:
    """Vectors of pictures in folders, near others of the same folder, by name."""
    lot = np.random.default_rng(0)
    return {
        f"zoo/{FOLDERS[at % 3]}/{at:02d}.jpg": (10 * np.eye(3, 6)[at % 3] + lot.random(6)).astype(np.float32)
        for at in range(pictures)
    }


def labelled(names: Iterable[str]) -> str:
    """A file with the folders as labels."""
    return "source,label\n" + "".join(f"{name},{name.split('/')[1]}\n" for name in names)


def put_index(connection: Connection, vectors: Mapping[str, npt.NDArray[np.float32]], into: Path) -> str:
    """Puts an index into images, which the stand-in copies; returns the commit."""
    by_id = {id_of(name): vector for name, vector in vectors.items()}
    picture_indexes.write(into, by_id, {id_of(name): [name] for name in vectors})
    files = [path for path in into.rglob("*") if path.is_file()]
    edits = [PutFile(f"/{path.relative_to(into)}", path) for path in files]
    return Repository(connection, "images").write(edits)


@pytest.fixture
def command(as_user: Connection, tmp_path: Path) -> Command:
    """The command in a directory of specifications with a stand-in for index that copies images."""
    home = tmp_path / "home"
    (home / "specs").mkdir(parents=True)
    (home / "specs" / "index.json").write_text(json.dumps(shell_spec("index", "images", COPY, "/")))
    deploy(as_user, [pipeline_specs.read(home / "specs" / "index.json")])
    return Command(home)


@pytest.fixture
def filled(command: Command, as_user: Connection, tmp_path: Path) -> Command:
    """The same with a library."""
    put_index(as_user, library(), tmp_path / "index")
    return command


def write(command: Command, name: str, text: str) -> Path:
    (command.directory / name).write_text(text)
    return Path(name)


def test_labels_are_put_and_measured(filled: Command, as_user: Connection) -> None:
    file = write(filled, "mine.csv", labelled(library()))
    said = filled.says("evaluate", "--labels", file)
    assert "put 1 file into labels: commit " in said
    assert "pipeline evaluate: created\n" in said
    assert "24 of 24 pictures with a label, 3 labels: 24 queries\n" in said
    assert re.search(r"^precision@1 +1\.000 \(1\.000 to 1\.000\) +1\.000 \(1\.000 to 1\.000\)$", said, re.MULTILINE)
    assert re.search(r"^MRR@10 +1\.000 ", said, re.MULTILINE)
    assert "dog for ape" in said or "ape for dog" in said
    assert "to use it: lookalike deploy --set THRESHOLD=" in said
    assert said.endswith("report: results/evaluation/index.html\n")
    report = filled.directory / "results" / "evaluation"
    files = ["calibration.json", "index.html", "metrics.json", "queries.parquet"]
    assert sorted(path.name for path in report.iterdir()) == files

    newest = ProjectJobs(as_user).newest("evaluate")
    done = filled.run("evaluate", "--labels", file, "--json", "--output", "here")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["directory"] == "here"
    assert ProjectJobs(as_user).newest("evaluate") == newest
    for name in ("metrics", "calibration"):
        assert told[name] == json.loads((filled.directory / "here" / f"{name}.json").read_bytes())

    half = labelled([*library()][:12])
    said = filled.says("evaluate", "--labels", write(filled, "mine.csv", half))
    assert "12 of 24 pictures with a label" in said
    assert "left out:\n  pictures without a label: 12\n" in said
    assert dict(Repository(as_user, "labels").read_all("/**")) == {"/evaluate/mine.csv": half.encode()}

    said = filled.says("evaluate", "--off")
    assert "pipeline evaluate: deleted\n" in said
    assert set(ProjectJobs(as_user).pipelines()) == {"index"}
    assert Repository(as_user, "labels").exists("/evaluate/mine.csv")


def test_without_labels_it_says_how_to_give_some(filled: Command, as_user: Connection) -> None:
    assert filled.fails("evaluate").startswith("no picture of the library has a label: give some with `lookalike eval")
    assert (filled.directory / "results" / "evaluation" / "index.html").exists()
    Repository(as_user, "labels").write([DeleteFile("/labels.csv")])
    assert filled.fails("evaluate").startswith("no picture of the library has a label")
    said = filled.says("evaluate", "--labels-from-folders")
    assert "24 of 24 pictures with a label, 3 labels" in said
    assert "zoo/cat/00.jpg,cat\r\n" in Repository(as_user, "labels").read("/evaluate/folders.csv").decode()


def test_labels_that_say_nothing(filled: Command) -> None:
    unknown = write(filled, "mine.csv", "source,label\nx.jpg,cat\n")
    assert filled.fails("evaluate", "--labels", unknown).startswith(
        "none of the labelled sources (1) is in the library"
    )
    one = write(filled, "mine.csv", "source,label\nzoo/cat/00.jpg,cat\nzoo/dog/01.jpg,cat\nbroken\n")
    said = filled.says("evaluate", "--labels", one)
    assert "left out mine.csv, line 4: a line needs a source and a label" in said
    assert "all labelled pictures have the label 'cat': any answer is right, so give some pictures another" in said


def test_reports_of_older_versions_are_read() -> None:
    """In which the reciprocal rank did not say how far it looks."""
    found = evaluation.read_metrics(b'{"ks": [1, 10], "micro": {"mAP@10": 1, "MRR": 2}, "macro": {"MRR": 3}}')
    assert found == {"ks": [1, 10], "micro": {"mAP@10": 1, "MRR@10": 2}, "macro": {"MRR@10": 3}}
    assert evaluation.read_metrics(b'{"queries": 0}') == {"queries": 0}


def test_files_that_cannot_be_put(command: Command) -> None:
    for text, said in (
        ("a.jpg,cat\n", "mine.csv, line 1: the first line must name the columns"),
        ("source,label\n", "mine.csv has no labels, only a header: add a line for each labelled picture"),
        ("source,label\nx\n", "mine.csv, line 2: a line needs a source and a label"),
    ):
        assert command.fails("evaluate", "--labels", write(command, "mine.csv", text)).startswith(said)
    assert command.fails("evaluate", "--labels", "gone.csv") == "gone.csv cannot be read: No such file or directory"
    (command.directory / "other").mkdir()
    first, second = (write(command, name, labelled(library())) for name in ("mine.csv", "other/mine.csv"))
    said = command.fails("evaluate", "--labels", first, "--labels", second)
    assert said == "two files are called mine.csv, and one would replace the other: rename one of them"


def test_an_empty_library(command: Command) -> None:
    assert command.fails("evaluate") == NOTHING
    assert command.fails("evaluate", "--labels-from-folders") == NOTHING


@pytest.mark.only_in_all
def test_reading_outlasts_a_restart_of_the_server(filled: Command, own_configuration: Path) -> None:
    write(filled, "mine.csv", labelled(library()))
    filled.says("evaluate", "--labels", "mine.csv")
    outlasts(filled, own_configuration, "evaluate")
