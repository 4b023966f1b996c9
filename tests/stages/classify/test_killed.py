"""Trainings killed with SIGKILL go on from their last round, and end with the same bytes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stages import train
from stages.backbone import devices
from stages.datum.contract import Datum, DatumInput
from tests.stages.classify import finetuning_sets

NAMES = ("labelled", "models", "parameters")


def parameters(directory: Path, checkpoints: str, steps: int) -> Path:
    """A file of parameters, tuned.json."""
    tune = {"epochs": 4, "learning_rate": 0.003, "batch_size": 8, "checkpoints": checkpoints, "checkpoint_steps": steps}
    directory.mkdir()
    file = directory / "tuned.json"
    file.write_text(json.dumps({"folds": 2, "epochs": 5, "fine_tune": tune}))
    return file


def start(inputs: Path, file: Path, out: Path) -> "subprocess.Popen[str]":
    """A training in a process of its own."""
    given = [f"--input={name}={inputs / name}" for name in NAMES[:2]]
    return subprocess.Popen(
        [sys.executable, "-m", "stages.train", *given, f"--input=parameters={file}", f"--out={out}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def lines_until(process: "subprocess.Popen[str]", epochs: int | None) -> list[str]:
    """The lines that a training prints, until it has finished so many epochs and kept the state of all but the last of
    them; None: until it ends."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if epochs is not None and sum(", epoch " in each and ": loss" in each for each in lines) == epochs:
            break
    return lines


def outputs(out: Path) -> dict[str, bytes]:
    """The files of a run but for its parameters, which name the bucket."""
    files = {path.name: path.read_bytes() for path in sorted((out / "tuned").iterdir())}
    run = json.loads(files.pop("run.json"))
    assert run["failure"] == ""
    del run["parameters"]
    return files | {"run": json.dumps(run).encode()}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("steps", [0, pytest.param(2, marks=pytest.mark.soak)], ids=["epochs", "steps"])
def test_a_killed_training_goes_on_and_gives_the_same_bytes(tmp_path: Path, steps: int) -> None:
    devices.prepare({})
    finetuning_sets.written(tmp_path, finetuning_sets.backbone(), *finetuning_sets.pictures(12))
    given = [tmp_path / "labelled", tmp_path / "models", parameters(tmp_path / "plain", "", 0)]
    inputs = [DatumInput(name, path, path.name, "") for name, path in zip(NAMES, given, strict=True)]
    train.start({})(Datum({each.name: each for each in inputs}, tmp_path / "whole"))

    bucket = tmp_path / "bucket"
    file = parameters(tmp_path / "kept", f"file://{bucket}", steps)
    for before, epochs in enumerate((2, 9)):  # within the first fold, and in the last training
        process = start(tmp_path, file, tmp_path / "killed")
        lines = lines_until(process, epochs)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        went_on = [line for line in lines if "goes on from a checkpoint" in line]
        assert len(went_on) == before, "".join(lines)
        assert [each.suffix for each in bucket.iterdir() if not each.name.startswith(".")] == [".checkpoint"]
        assert not (tmp_path / "killed" / "tuned" / "run.json").exists()
    last = start(tmp_path, file, tmp_path / "killed")
    said = "".join(lines_until(last, None))
    assert last.wait() == 0, said
    assert "goes on from a checkpoint: the last training" in said
    assert outputs(tmp_path / "killed") == outputs(tmp_path / "whole")
    assert not list(bucket.iterdir())
