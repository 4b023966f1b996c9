"""`lookalike classify` with stand-ins for the pipelines that train: what is put, listed, compared, refused."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pipelines.client import branches
from pipelines.client.deployment import train_branch
from pipelines.client.deployment.deployment import deploy
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.specifications import pipeline_specs
from tests.command import Command

pytestmark = pytest.mark.late_alone

LABELLED = """
import hashlib, os, pathlib
from stages.record.label_files import unite
from stages.files.tables.label_table import LabelTable
from stages.record.origin import Origin
root = pathlib.Path(os.environ.get("LOCALPACHD_PFS", "/pfs"))
of = unite((each.name, each.read_bytes()) for each in sorted((root / "labels").iterdir())).of
rows = sorted((hashlib.sha256(source.encode()).hexdigest(), source, label) for source, label in of.items())
ids, sources, labels = zip(*rows) if rows else ((), (), ())
thumbnails, origin = [b""] * len(ids), Origin("0" * 64, "pad", 96, 16)
table = LabelTable(ids=ids, sources=sources, labels=labels, thumbnails=thumbnails, origin=origin)
table.write(root / "out" / "0.parquet")
"""
TRAIN = """
import os, pathlib
import numpy as np
from stages.classify.training import run_records, training_parameters
from stages.classify.training.run_records import PictureCounts, TrainingRun, AccuracyScore
from stages.files.tables.label_table import LabelTable
from stages.record.origin import Origin
from stages.files.tables.prediction_table import PredictionTable
root = pathlib.Path(os.environ.get("LOCALPACHD_PFS", "/pfs"))
(file,) = (root / "parameters").iterdir()
given = training_parameters.parse(file.name, file.read_bytes())
table = LabelTable.read(root / "labelled" / "0.parquet")
labels = dict(zip(table.sources, table.labels))
out = root / "out" / given.name
out.mkdir()
if given.learning_rate > 9:
    run = TrainingRun(given.name, given, failure="the loss became infinite in epoch 3: take a smaller learning_rate")
else:
    names = sorted(labels)
    kinds = sorted(set(labels.values()))
    said = [labels[name] if at < given.epochs else kinds[0] for at, name in enumerate(names)]
    right = sum(labels[name] == each for name, each in zip(names, said))
    ones = np.ones(len(names), np.float32)
    ids = [f"{at:064x}" for at in range(len(names))]
    own = [labels[name] for name in names]
    splits = ["cross-validation"] * len(names)
    table = PredictionTable(ids=ids, sources=names, labels=own, splits=splits, predicted=said,
              probabilities=ones, true_probabilities=ones)
    table.write(out / run_records.PREDICTIONS)
    (out / run_records.MODEL).write_bytes(b"model")
    score = AccuracyScore.counted(right, len(names))
    run = TrainingRun(given.name, given, labels=kinds, pictures=PictureCounts(training=len(names)),
              cross_validation=score, weights=1,
              origin=Origin("0" * 64, "pad", 96, 16, "tiny"), device="cpu", held_out_share=0.2)
(out / run_records.FILE).write_bytes(run_records.format_run(run))
"""
SELECT = """
import json, os, pathlib
from stages.classify import classifier_description
from stages.classify.training import run_records
root = pathlib.Path(os.environ.get("LOCALPACHD_PFS", "/pfs"))
found = [run_records.parse((each / run_records.FILE).read_bytes()) for each in sorted((root / "train").iterdir())]
good = [each for each in found if not each.failure]
best = max(good, key=lambda each: each.cross_validation.right, default=None)
note = "" if best else "no run has succeeded"
nothing = {"count": 0, "examples": []}
left_out = dict.fromkeys(("problems", "conflicts", "mixed", "unknown", "unlearnable"), nothing)
metrics = {"note": note, "run": best.name if best else "", "left_out": left_out, "held_out": None, "labels": 2,
           "runs": {"succeeded": len(good)}, "pictures": {"training": 4, "held_out": 0},
           "cross_validation": best.as_data()["cross_validation"] if best else None}
(root / "out" / "metrics.json").write_text(json.dumps(metrics))
(root / "out" / "index.html").write_text("page")
if best is not None:
    described = classifier_description.of_run(best)
    (root / "out" / classifier_description.FILE).write_bytes(classifier_description.format_description(described))
"""


def document(name: str, program: str, *inputs: dict[str, Any]) -> dict[str, Any]:
    return {
        "pipeline": {"name": name},
        "input": {"cross": [{"pfs": {"glob": "/", **each}} for each in inputs]},
        "transform": {"image": "shell:1", "cmd": ["python3", "-"], "stdin": program.splitlines()},
    }


def specifications(branch: str = "master") -> dict[str, dict[str, Any]]:
    """Stand-ins for all pipelines of the group; train and select read this branch of labelled."""
    held = {"name": "labelled", "repo": "labelled", "branch": branch}
    return {
        "usual": document("usual", "", {"name": "in", "repo": "images"}),
        "classify/labelled": document(
            "labelled", LABELLED, {"name": "images", "repo": "images"}, {"name": "labels", "repo": "labels"}
        ),
        "classify/train": document(
            "train", TRAIN, held, {"name": "parameters", "repo": "parameters", "glob": "/*"}
        ),
        "classify/select": document("select", SELECT, held, {"name": "train", "repo": "train"}),
    }  # fmt: skip


def write(home: Path, branch: str = "master") -> None:
    for name, each in specifications(branch).items():
        path = home / "specs" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(each))


@pytest.fixture
def here(command: Command, as_user: Connection) -> Command:
    """The command in a directory with stand-ins, of which those that every library has are deployed."""
    write(command.directory)
    deploy(as_user, [pipeline_specs.read(command.directory / "specs" / "usual.json")])
    for name in ("cat/1.png", "cat/2.png", "dog/3.png", "dog/4.png"):
        path = command.directory / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(int(name[-5])))
    (command.directory / "none.json").write_text('{"epochs": 1}')
    (command.directory / "some.json").write_text('{"epochs": 3}')
    return command


def picture(seed: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (seed, 0, 0)).save(file, "PNG")
    return file.getvalue()


def test_folders_become_labels(here: Command, as_user: Connection) -> None:
    said = here.says("classify", "add", "pets")
    (name,) = (each for each in Repository(as_user, "labels").list())
    assert "put 4 files into images and 1 file into labels: commit " in said
    assert "4 of 4 pictures with 2 labels: cat 2, dog 2\n" in said
    assert f"labels: labels@master:{name}\n" in said
    assert said.endswith("to train on them: lookalike classify train\n")
    assert b"pets/dog/3.png,dog" in Repository(as_user, "labels").read(name)

    (here.directory / "mine.csv").write_text("source,label\n1.png,tom\npets/dog/3.png,cat\ngone.png,tom\nbroken\n")
    done = here.run("classify", "add", "pets", "--labels", "mine.csv", "--json")
    told = json.loads(done.stdout)
    assert told["conflicts"] == {"pets/dog/3.png": ["cat", "dog"]}
    assert (told["elsewhere"], told["labels"]) == (["1.png", "gone.png"], {"cat": 1})
    assert len([*Repository(as_user, "labels").list()]) == 2
    said = here.says("classify", "add", "pets", "--labels", "mine.csv")
    assert "left out mine.csv, line 5: a line needs a source and a label" in said
    assert "labelled, but not among these pictures: 1.png, gone.png\n" in said
    assert "with several labels, and so without any: pets/dog/3.png (cat and dog)\n" in said


def test_a_rejected_picture_is_not_counted(here: Command, preprocessing: Connection) -> None:
    (here.directory / "pets" / "dog" / "torn.png").write_bytes(picture(5)[:40])
    said = here.says("classify", "add", "pets")
    assert "images: pets/dog/torn.png: " in said and "4 of 4 pictures with 2 labels: cat 2, dog 2\n" in said


def test_idx_files_are_pictures_with_labels(here: Command, as_user: Connection) -> None:
    digits = here.directory / "digits"
    digits.mkdir()
    images, labels = (digits / f"train-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1"))
    images.write_bytes(b"\0\0\x08\x03" + b"\0\0\0\x03\0\0\0\x04\0\0\0\x04" + bytes(range(48)))
    labels.write_bytes(b"\0\0\x08\x01\0\0\0\x03\7\0")
    assert "train-labels-idx1-ubyte is truncated" in here.fails("classify", "add", "digits")
    assert not Repository(as_user, "images").exists("/")
    labels.write_bytes(b"\0\0\x08\x01\0\0\0\x03\7\0\7")
    said = here.says("classify", "add", "digits")
    assert "put 3 files into images and 1 file into labels: commit " in said and "not a picture" not in said
    assert "3 of 3 pictures with 2 labels: 7 2, 0 1\n" in said
    (name,) = Repository(as_user, "labels").list()
    assert b"digits/train-images-idx3-ubyte/000001.pgm,0" in Repository(as_user, "labels").read(name)


def run_names(here: Command, *more: str) -> list[str]:
    return [each["name"] for each in json.loads(here.run("classify", "runs", *more, "--json").stdout)]


def test_runs_are_computed_listed_and_compared(here: Command, as_user: Connection) -> None:
    assert here.says("classify", "runs") == "there are no runs yet: lookalike classify train\n"
    here.says("classify", "add", "pets")
    (here.directory / "wild.json").write_text('{"learning_rate": 9.5}')
    said = here.says("classify", "train", "none.json", "some.json", "wild.json")
    assert "put 3 files into parameters: commit " in said and "pipeline select: created\n" in said
    assert re.search(r"^none@\w{6} +epochs=1 +50.0 \(15.0 to 85.0\) +4 \w{6} \w{6} ", said, re.MULTILINE)
    assert re.search(r"^some@\w{6} chosen +epochs=3 ", said, re.MULTILINE)
    assert re.search(r"^wild@\w{6} failed: the loss became infinite in epoch 3: take a smaller", said, re.MULTILINE)
    assert "some, the best of 2 runs: 75.0 % (" in said and "right in cross-validation\n4 training pictures" in said
    assert said.endswith("report: results/classify/index.html\n")
    assert (here.directory / "results" / "classify" / "index.html").read_text() == "page"

    first = run_names(here)
    assert [each.partition("@")[0] for each in first] == ["none", "some", "wild"]
    (here.directory / "all.json").write_text('{"epochs": 4}')
    said = here.says("classify", "train", "all.json", "--remove", "wild")
    assert "put 1 file into and removed 1 file from parameters: commit " in said
    newest = ProjectJobs(as_user).newest("train")
    assert newest is not None and (newest.processed, newest.skipped) == (1, 2)
    names = run_names(here)
    assert names == [f"all@{newest.id[:6]}", *first[:2]]  # what the later job skipped is of the earlier one
    assert run_names(here, "--all") == [f"all@{newest.id[:6]}", *first]

    said = here.says("classify", "runs", "--diff", "none", names[0])
    assert re.search(r"^epochs +1 +4 *$", said, re.MULTILINE)
    assert re.search(r"^cross-validated +50.0 % .* \+50.0 points *$", said, re.MULTILINE)
    assert re.search(r"^commit of labels .* the same *$", said, re.MULTILINE)
    assert f"pictures right in {names[0]} alone: 2\n  pets/dog/3.png, dog taken for cat\n" in said
    assert here.fails("classify", "runs", "--diff", "none", "nobody").startswith("there is no run nobody: ")

    (here.directory / "pets" / "cat" / "2.png").rename(here.directory / "pets" / "dog" / "2.png")
    here.says("classify", "add", "pets")
    here.says("classify", "train")
    told = json.loads(here.run("classify", "runs", "--diff", names[0], "all", "--json").stdout)
    assert told["labels"]["added"] == {"count": 1, "examples": ["pets/dog/2.png"]}
    assert told["labels"]["removed"] == {"count": 1, "examples": ["pets/cat/2.png"]}


def test_a_training_without_a_successful_run_ends_with_the_reason_and_stays(here: Command) -> None:
    here.says("classify", "add", "pets")
    (here.directory / "wild.json").write_text('{"learning_rate": 9.5}')
    done = here.run("classify", "train", "wild.json")
    assert (done.returncode, done.stderr) == (1, "lookalike: no training has succeeded: no run has succeeded\n")
    assert "failed: the loss became infinite in epoch 3" in done.stdout
    assert done.stdout.endswith("report: results/classify/index.html\n")

    assert "no file wold.json to remove: did you mean wild.json?" in here.fails("classify", "train", "--remove", "wold")
    assert here.fails("classify", "train", "--remove", "wild").startswith("a training needs a file of parameters: put")
    both = here.fails("classify", "train", "wild.json", "--remove", "wild")
    assert both.startswith("wild.json is both put and removed")


def test_what_cannot_be_used_is_not_put(here: Command, as_user: Connection) -> None:
    (here.directory / "alone.png").write_bytes(picture(0))
    assert here.fails("classify", "add", "alone.png").startswith("there is no label, so nothing was put: ")
    assert not Repository(as_user, "images").exists("/")
    for text, said in (
        ('{"epoch": 3}', "epoch is not a parameter: did you mean epochs?"),
        ('{"dropout": NaN}', "it holds NaN, which is not a number of JSON"),
        ('{"epochs": 0}', "epochs must be a whole number from 1 to 10000; it is 0"),
    ):
        (here.directory / "bad.json").write_text(text)
        refused = here.fails("classify", "train", "some.json", "bad.json")
        assert refused.startswith(f"nothing was put: bad.json: {said}")
    assert "train" not in ProjectJobs(as_user).pipelines() and not Repository(as_user, "parameters").exists("/")


def test_the_default_run_and_a_classifier_in_production(here: Command, as_user: Connection) -> None:
    here.says("classify", "add", "pets")
    said = here.says("classify", "train")
    assert [each.partition("@")[0] for each in run_names(here)] == ["linear"]
    assert "labelled, train and select will follow every change" in said
    assert here.fails("classify", "train", "--if-new", "5").startswith("--if-new is for trainings that are held back")
    assert "trainings follow every change here, so --now changes nothing" in here.says("classify", "train", "--now")

    good = Repository(as_user, "select").good()
    assert good is not None
    branches.move(as_user, "select", "production", good.at)
    assert re.search(r"^linear@\w{6} promoted ", here.says("classify", "runs"), re.MULTILINE)
    assert here.fails("classify", "off").startswith(f"linear, commit {good.at} of select, is in production and would")
    assert "select" in ProjectJobs(as_user).pipelines()
    said = here.says("classify", "off", "--force")
    assert "pipeline select: deleted\npipeline train: deleted\npipeline labelled: deleted\n" in said
    assert said.endswith("the repos labels and parameters stay, and so do the pictures\n")
    assert Repository(as_user, "parameters").exists("/linear.json")


@pytest.mark.only_in_all
def test_trainings_that_are_held_back(here: Command, as_user: Connection) -> None:
    here.says("classify", "add", "pets")
    here.says("classify", "train")
    write(here.directory, train_branch.BRANCH)
    assert "pipeline train: updated\n" in here.says("deploy")
    assert "the newest labelled pictures have been trained on\n" in here.says("classify", "train")
    (first,) = run_names(here)

    (here.directory / "pets" / "cat" / "5.png").write_bytes(picture(5))
    here.says("classify", "add", "pets")
    few = "1 labelled picture that no training has had"
    assert f"{few}; to train on them: lookalike classify train --now\n" in here.says("classify", "train")
    said = here.says("classify", "train", "--if-new", "2")
    assert f"{few}: 1 fewer than 2, so nothing is trained\n" in said
    assert run_names(here) == [first]
    said = here.says("classify", "train", "--if-new", "1")
    assert f"{few}: training on labelled at " in said
    second, *others = json.loads(here.run("classify", "runs", "--all", "--json").stdout)
    assert others[0]["name"] == first
    assert (second["run"]["pictures"]["training"], others[0]["run"]["pictures"]["training"]) == (5, 4)
    head = train_branch.head(as_user, "labelled")
    for repo in ("labels", "images"):
        assert second[repo] == Repository(as_user, repo, head).at or second[repo] != others[0][repo]

    (here.directory / "pets" / "cat" / "5.png").rename(here.directory / "pets" / "dog" / "5.png")
    here.says("classify", "add", "pets")
    said = here.says("classify", "train", "--now", "--no-wait")
    assert f"{few}: training on labelled at " in said and said.endswith("running: see `lookalike status`\n")
