"""Networks as files: equal bytes for equal networks, and nothing runs when one is read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

from stages.classify import network_file
from stages.datum.contract import StageError
from tests.gc_prelude import GC_PRELUDE
from tests.stages.classify.networks import DIMENSION, network

PROJECT = Path(__file__).parents[3]


def test_equal_networks_give_equal_bytes(tmp_path: Path) -> None:
    network_file.save(network(), tmp_path / "a.keras")
    network(seed=1)  # the process has made other layers in between
    network_file.save(network(), tmp_path / "b.keras")
    network_file.save(network(seed=2), tmp_path / "c.keras")
    assert (tmp_path / "a.keras").read_bytes() == (tmp_path / "b.keras").read_bytes()
    assert (tmp_path / "a.keras").read_bytes() != (tmp_path / "c.keras").read_bytes()


@pytest.mark.only_in_all
def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from stages.classify import network_file; from tests.stages.classify.networks import network\n"
        "network_file.save(network(), Path(sys.argv[1]))\n"
    )
    network_file.save(network(), tmp_path / "a.keras")
    subprocess.run(
        [sys.executable, "-c", GC_PRELUDE + program, tmp_path / "b.keras"],
        check=True,
        cwd=PROJECT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(PROJECT)},
        stderr=subprocess.DEVNULL,
    )
    assert (tmp_path / "a.keras").read_bytes() == (tmp_path / "b.keras").read_bytes()


def test_a_file_has_no_date_and_a_compiled_network_no_optimizer(tmp_path: Path) -> None:
    model = network()
    network_file.save(model, tmp_path / "a.keras")
    model.compile(optimizer="adam", loss="categorical_crossentropy")
    model.train_on_batch(np.zeros((4, DIMENSION), np.float32), np.eye(3, dtype=np.float32)[[0, 1, 2, 0]])
    network_file.save(model, tmp_path / "b.keras")
    with zipfile.ZipFile(tmp_path / "a.keras") as file:
        assert {each.date_time for each in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert b"date" not in file.read("metadata.json")
    with zipfile.ZipFile(tmp_path / "b.keras") as file:
        assert b"optimizer" not in file.read("model.weights.h5")
        assert json.loads(file.read("config.json"))["compile_config"] == {}
    np.testing.assert_array_equal(network_file.load(tmp_path / "b.keras").get_weights()[0], model.get_weights()[0])


def test_a_network_is_read_back(tmp_path: Path) -> None:
    network_file.save(network(), tmp_path / "a.keras")
    values = np.random.default_rng(0).normal(size=(5, DIMENSION)).astype(np.float32)
    np.testing.assert_array_equal(network_file.load(tmp_path / "a.keras")(values), network()(values))


@pytest.mark.parametrize("content", [b"", b"PK", b"\x80\x04pickle", b'{"class_name": "Functional"}'])
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.keras").write_bytes(content)
    with pytest.raises(StageError, match="^model.keras cannot be loaded as a Keras model"):
        network_file.load(tmp_path / "model.keras")


def test_code_in_a_file_does_not_run(tmp_path: Path) -> None:
    taken = keras.Input((DIMENSION,), name="taken")
    model = keras.Model(taken, keras.layers.Lambda(lambda x: x * 2, name="code")(taken), name="classifier")
    network_file.save(model, tmp_path / "model.keras")
    with pytest.raises(StageError, match="without Lambda layers"):
        network_file.load(tmp_path / "model.keras")
