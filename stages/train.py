"""The train stage: a classifier for each file of parameters, validated by folds, or the reason why there is none.

Owns the checks of what a datum is given, which come before TensorFlow's import, which takes seconds; so it imports
TensorFlow by name, when it is needed. A training that cannot succeed is a run with a reason, not a failed datum: one
file of parameters with a typo must not keep the others' runs from being compared.
"""

from __future__ import annotations

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.train"))

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from stages.backbone import keras_import
from stages.backbone.backends import keras_backend
from stages.classify.training import dataset, run_records
from stages.classify.training.run_records import TrainingFailure, TrainingRun
from stages.classify.training.training_parameters import parse
from stages.datum.contract import Datum, DatumInput, StageError, load
from stages.datum.input_cache import InputCache

VERSION = 1
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """The GPU settings are read with the first training. The returned object keeps the labelled pictures, which all
    datums of a commit share."""
    return TrainStage(environment)


class TrainStage:
    """Trains one classifier at a time.

    Inputs: `parameters`, a file <run>.json; `labelled`, all that the stage labelled wrote; `models`, a directory with
    backbone.keras and backbone.json or a datum of these two files, lazy or not, which is read for fine-tuning alone.
    Writes into <run>/: run.json and, of a run that did not fail, model.keras, which gives probabilities, and
    predictions.parquet.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._datasets = InputCache(lambda labelled: dataset.read(labelled.path))

    def __call__(self, datum: Datum) -> None:
        """Raises StageError if an input is missing or is not what another stage wrote."""
        datum.require("train needs labelled, models and parameters", "labelled", "models", "parameters")
        file = datum.inputs["parameters"]
        name = Path(file.repo_path).name
        out = datum.out / (name.removesuffix(".json") or name)
        began = time.monotonic()
        run = self._run(file, name, out, datum.inputs)
        out.mkdir(parents=True, exist_ok=True)
        (out / run_records.FILE).write_bytes(run_records.format_run(run))
        print(f"train: {out.name}: {_said(run)} ({time.monotonic() - began:.1f} s)")

    def _run(self, file: DatumInput, name: str, out: Path, inputs: Mapping[str, DatumInput]) -> TrainingRun:
        try:
            parameters = parse(name, _content(file.path, name))
        except StageError as reason:
            return TrainingRun(out.name, None, str(reason))
        given = self._datasets.get(inputs["labelled"])
        try:
            given.check()
            keras_backend.check_training(os.environ)
            with keras_import.quiet():
                training = load("stages.classify.training.training_task")
            run: TrainingRun = training.train(given, parameters, inputs["models"].directory, self._environment, out)
        except TrainingFailure as reason:
            return replace(given.run(parameters), failure=str(reason))
        return run


def _content(path: Path, name: str) -> bytes:
    """Raises StageError for a directory."""
    if path.is_dir():
        raise StageError(f"{name} is a directory; each file at the top of the repo parameters is one run")
    return path.read_bytes()


def _said(run: TrainingRun) -> str:
    if run.failure or run.cross_validation is None:
        return f"failed: {run.failure}"
    score, count = run.cross_validation, run.pictures.training
    return f"{len(run.labels)} labels, {count} pictures, cross-validated accuracy {score.accuracy:.2%}"
