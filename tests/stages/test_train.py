"""The stage train as Pachyderm runs it: labelled pictures and a file of parameters in, a run out."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages import train
from stages.backbone.backbone_spec import BackboneSpec, WeightsOrigin, format_spec
from stages.backbone.backbones import load_keras
from stages.classify import classifier, classifier_description
from stages.classify.training import run_records, splits
from stages.classify.training.run_records import TrainingRun
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files.tables.label_table import LabelTable
from stages.files.tables.prediction_table import PredictionTable
from stages.record.origin import Origin
from tests.gc_prelude import GC_PRELUDE
from tests.stages.classify.labelled_sets import LABELS, MODEL, clouds, write

PROJECT = Path(__file__).parents[2]
QUICK = {"epochs": 10, "learning_rate": 0.05, "batch_size": 32, "folds": 3}
FILES = ["model.keras", "predictions.parquet", "run.json"]


def write_inputs(root: Path) -> Path:
    """Labelled pictures that can be learnt, and a backbone of other vectors, which a head does not read."""
    (root / "models").mkdir()
    other = BackboneSpec("another", 32, "avg", 8, 32, "float32", WeightsOrigin("a test", ""), "cd" * 32)
    (root / "models" / "backbone.json").write_text(format_spec(other))
    (root / "models" / "backbone.keras").write_bytes(b"")
    (root / "parameters").mkdir()
    write(root / "labelled", clouds(90))
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_inputs(tmp_path)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrainingRun, str]:
    """The place of a training with QUICK, its record, and what it says."""
    root = write_inputs(tmp_path_factory.mktemp("quick"))
    with redirect_stdout(io.StringIO()) as said:
        found, _ = run(root, "quick.json", QUICK)
    return root, found, said.getvalue()


def datum(root: Path, name: str, content: Any, out: Path, commit: str = "") -> Datum:
    """A datum for a file of parameters, given as JSON or as bytes."""
    file = root / "parameters" / name
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    out.mkdir(exist_ok=True)
    inputs = {
        "labelled": DatumInput("labelled", root / "labelled", "", commit),
        "models": DatumInput("models", root / "models", "", commit),
        "parameters": DatumInput("parameters", file, name, commit),
    }
    return Datum(inputs, out)


def run(root: Path, name: str, content: Any, environment: Mapping[str, str] | None = None) -> tuple[TrainingRun, Path]:
    """One run, in a process of its own stage; its record and its directory."""
    train.start(environment or {})(datum(root, name, content, root / "out"))
    directory = root / "out" / name.removesuffix(".json")
    return run_records.parse((directory / "run.json").read_bytes()), directory


def test_a_run_has_a_model_predictions_and_a_record(quick: tuple[Path, TrainingRun, str]) -> None:
    root, found, said = quick
    directory = root / "out" / "quick"
    assert sorted(path.name for path in directory.iterdir()) == FILES
    assert (found.name, found.failure, found.labels, found.takes) == ("quick", "", LABELS, "vectors")
    assert found.parameters is not None
    assert found.parameters.as_data() == {**found.parameters.as_data(), **QUICK}
    tables = [LabelTable.read(path) for path in sorted((root / "labelled").glob("*.parquet"))]
    held = {id for table in tables for id in table.ids if splits.held_out(id, 0.2)}
    assert (found.pictures.training, found.pictures.held_out) == (90 - len(held), len(held))
    assert found.origin == Origin(MODEL, "pad", 32, 8, "small at 32 px")
    assert (found.held_out_share, found.device, found.weights) == (0.2, "cpu", 27)
    assert {name: len(curve) for name, curve in found.curves.items()} == dict.fromkeys(run_records.CURVES, 10)
    table = PredictionTable.read(directory / "predictions.parquet")
    assert len(table) == 90
    right = np.array(table.labels) == np.array(table.predicted)
    unseen = np.array([id in held for id in table.ids])
    assert found.cross_validation == run_records.AccuracyScore.counted(int(right[~unseen].sum()), int((~unseen).sum()))
    assert found.held_out == run_records.AccuracyScore.counted(int(right[unseen].sum()), int(unseen.sum()))
    assert "train: quick: 3 labels, " in said


def test_the_model_gives_the_probabilities_of_the_predictions(quick: tuple[Path, TrainingRun, str]) -> None:
    root, found, _ = quick
    directory = root / "out" / "quick"
    (directory / "labels.json").write_bytes(
        classifier_description.format_description(classifier_description.of_run(found))
    )
    opened = classifier.open(directory)
    table = PredictionTable.read(directory / "predictions.parquet")
    unseen = {id: row for row, id in enumerate(table.ids) if table.splits[row] == "held-out"}
    for path in sorted((root / "labelled").glob("*.parquet")):
        labelled, vectors = LabelTable.read(path), np.load(path.with_suffix(".npy"))
        for place, id in enumerate(labelled.ids):
            if id in unseen:
                given = opened(vectors[place : place + 1])[0]
                assert opened.chosen.labels[int(given.argmax())] == table.predicted[unseen[id]]
                assert given.max() == pytest.approx(table.probabilities[unseen[id]], abs=1e-4)
    assert load_keras(directory / "model.keras").get_layer("temperature").scale == pytest.approx(1 / found.temperature)


@pytest.mark.parametrize(
    "parameters",
    [pytest.param(QUICK, marks=pytest.mark.soak), {**QUICK, "head": "mlp", "hidden": [16], "dropout": 0.2}],
    ids=["linear", "mlp"],
)
@pytest.mark.only_in_all
def test_equal_inputs_give_equal_bytes_in_any_process_with_any_number_of_threads(
    parameters: dict[str, Any], root: Path
) -> None:
    _, directory = run(root, "quick.json", parameters)
    expected = [(directory / name).read_bytes() for name in FILES]
    (root / "parameters" / "quick.json").write_text(json.dumps(dict(reversed(parameters.items()))))
    program = (
        "import sys, tensorflow\n"
        "tensorflow.config.threading.set_intra_op_parallelism_threads(int(sys.argv[1]))\n"
        "tensorflow.config.threading.set_inter_op_parallelism_threads(int(sys.argv[1]))\n"
        "from stages.datum import contract\n"
        "raise SystemExit(contract.run('stages.train', sys.argv[2:]))\n"
    )
    inputs = [f"labelled={root}/labelled", f"models={root}/models", f"parameters={root}/parameters::quick.json"]
    given = [word for each in inputs for word in ("--input", each)]
    threads, out = "5", root / "out of another"  # this process has as many as the machine has cores
    subprocess.run(
        [sys.executable, "-c", GC_PRELUDE + program, threads, *given, "--out", out],
        check=True,
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": threads},
        capture_output=True,
        timeout=110,
    )
    assert [(out / "quick" / name).read_bytes() for name in FILES] == expected


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("typo.json", {"epoch": 5}, "typo.json: epoch is not a parameter: did you mean epochs?"),
        ("nan.json", b'{"learning_rate": NaN}', "nan.json: it holds NaN, which is not a number of JSON"),
        ("text.json", b"head: linear", "text.json: it is not valid JSON"),
        ("notes.txt", b"{}", "notes.txt is not the name of a file of parameters: it must end in .json"),
        ("tuned.json", {**QUICK, "fine_tune": {}}, "the repo models holds another at 32 px"),
    ],
)
def test_a_training_that_cannot_succeed_is_a_run_with_its_reason(
    name: str, content: Any, reason: str, root: Path
) -> None:
    found, directory = run(root, name, content)
    assert found.failure.startswith(reason)
    assert [path.name for path in directory.iterdir()] == ["run.json"]
    assert found.cross_validation is None


def test_too_few_labels_are_a_run_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "parameters").mkdir()
    write(tmp_path / "labelled", {"a.jpg": "cat", "b.jpg": "dog"}, share=0)
    found, directory = run(tmp_path, "quick.json", QUICK)
    assert found.failure.startswith("no label has 2 training pictures (cat, dog with fewer)")
    assert [path.name for path in directory.iterdir()] == ["run.json"]
    assert found.parameters is not None
    assert found.unlearnable == {"cat": 1, "dog": 1}


def test_reasons_are_found_without_tensorflow(root: Path) -> None:
    """Its import takes seconds, and a typo is reported at once."""
    (root / "parameters" / "typo.json").write_text('{"epoch": 5}')
    program = (
        "import sys\nfrom stages.datum import contract\n"
        "status = contract.run('stages.train', sys.argv[1:])\n"
        "raise SystemExit(status or 'tensorflow' in sys.modules or 'keras' in sys.modules)\n"
    )
    given = ["labelled=labelled", "models=models", "parameters=parameters::typo.json"]
    words = [word for each in given for word in ("--input", each)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    subprocess.run([sys.executable, "-c", program, *words, "--out", "out"], check=True, cwd=root, env=environment)
    assert "epoch is not a parameter" in run_records.parse((root / "out" / "typo" / "run.json").read_bytes()).failure


def test_labelled_pictures_are_read_once_for_all_runs_of_a_commit(root: Path) -> None:
    process = train.start({})
    cannot_train: dict[str, Any] = {"fine_tune": {}}  # on another backbone, which is told when all is read
    process(datum(root, "one.json", cannot_train, root / "out", "c0ffee"))
    for path in (root / "labelled").iterdir():
        path.unlink()
    process(datum(root, "two.json", cannot_train, root / "out", "c0ffee"))
    found = run_records.parse((root / "out" / "two" / "run.json").read_bytes())
    assert found.failure.startswith("the repo models holds another") and found.pictures.training > 0
    with pytest.raises(StageError, match="the repo labelled holds no pictures"):
        process(datum(root, "three.json", QUICK, root / "out", "another"))


def test_a_directory_of_parameters_is_a_run_with_its_reason(root: Path) -> None:
    (root / "parameters" / "grid").mkdir()
    given = datum(root, "one.json", QUICK, root / "out")
    inputs = {**given.inputs, "parameters": DatumInput("parameters", root / "parameters" / "grid", "grid", "")}
    train.start({})(Datum(inputs, given.out))
    found = run_records.parse((root / "out" / "grid" / "run.json").read_bytes())
    assert found.failure == "grid is a directory; each file at the top of the repo parameters is one run"


def test_a_missing_input_is_named(root: Path) -> None:
    given = datum(root, "one.json", QUICK, root / "out")
    for name in ("labelled", "models", "parameters"):
        with pytest.raises(StageError, match=f"the input {name} is missing"):
            train.start({})(Datum({each: given.inputs[each] for each in given.inputs if each != name}, given.out))
