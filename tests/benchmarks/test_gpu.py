"""The logic of the GPU benchmark at tiny sizes on the CPU, and the benchmark itself if there is a GPU."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks import embedding, gpu, knn
from benchmarks.arrays import XpArrays, on_gpu
from stages.datum.visible_gpus import gpu_visible
from tests import fake_gpus

TINY = knn.Size(queries=120, library=400, dimension=16)
HAS_GPU = gpu_visible(os.environ) and shutil.which("nvidia-smi") is not None


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main([]) == 1
    assert "no NVIDIA GPU here (nvidia-smi finds none)" in capsys.readouterr().err


def test_brute_force_finds_the_nearest_in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.arrays._TILE_BYTES", 4 * 50 * 7)
    random = np.random.default_rng(0)
    library, queries = (random.standard_normal((n, 8), np.float32) for n in (50, 23))
    true = np.argsort(((queries[:, None].astype(float) - library) ** 2).sum(axis=2), axis=1)[:, :3]
    assert np.array_equal(XpArrays("numpy").nearest(queries, library, 3), true)


def test_every_searcher_is_timed_and_checked() -> None:
    result = knn.measure(TINY, [XpArrays("numpy")], rounds=2)
    timed = {row.name: row for row in result.rows if row.section == "knn"}
    right = {row.name: row.rate for row in result.rows if row.section == "agreement"}
    assert timed.keys() == right.keys()
    assert {f"lookalike, exact, on {name} (from host memory)" for name in ("FAISS", "NumPy")} <= timed.keys()
    assert "scikit-learn" in timed
    assert [name for name in timed if "NumPy brute force (a comparison, not cuML" in name]
    assert set(right.values()) == {1.0}
    assert all(row.seconds and row.seconds > 0 for row in timed.values())
    assert not any(line.goal for line in result.lines), "the article's figures are for its own size"


def test_the_articles_figures_are_shown_for_its_size() -> None:
    fast = knn._line("cuML (fit and kneighbors, from host memory)", 0.5, 0.4, 1.0, knn.FULL)
    slow = knn._line("scikit-learn", 500.0, 0.4, 1.0, knn.FULL)
    assert (fast.goal, fast.met, fast.ratio) == ("0.791 s (NVIDIA P4, the article's figure)", "yes", "1.25")
    assert (slow.goal, slow.met) == ("454 s (8 vCPU, the article's figure)", "no")


def test_the_certificate_is_measured_against_its_bound() -> None:
    result = knn.measure_certificate(TINY)
    assert {line.met for line in result.lines} == {"yes"}
    excesses = {row.section: row.rate for row in result.rows if row.section.startswith("excess")}
    assert len(excesses) == 3
    assert max(rate for rate in excesses.values() if rate is not None) > 0.01, "float32 cannot be that good"


@pytest.mark.soak
def test_resnet50_is_measured_as_lookalike_runs_it_and_in_large_batches() -> None:
    result = embedding.measure(pictures=40, rounds=1, sizes=(32,))
    assert {row.name for row in result.rows} == {"as lookalike runs it", "batches of 256"}
    assert all(row.rate and row.rate > 0 for row in result.rows)
    assert [line.what for line in result.lines] == ["ResNet50, 32 × 32, as lookalike runs it (Keras on tensorflow)"]


def test_resnet50_is_measured_on_devices_that_were_prepared_before_it(tmp_path: Path) -> None:
    """The GPU is a fake one: its memory cannot be set any more once a model is made."""
    program = (
        "from benchmarks import embedding; import tensorflow as tf\n"
        "embedding.measure(pictures=2, rounds=1, sizes=(32,))\n"
        "print(tf.config.experimental.get_memory_growth(tf.config.list_physical_devices('GPU')[0]))"
    )
    assert fake_gpus.python(program, tmp_path / "log") == ["1 GPU, memory taken: as it grows", "True"]
    assert (tmp_path / "log").read_text() == "1 GPU\n"


def test_it_writes_its_measurements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "gpu.json"
    small = ["--queries", "110", "--library", "300", "--dimension", "8", "--rounds", "1"]
    assert gpu.main(["knn", "--cpu", *small, "--json", str(target)]) == 0
    assert "matrix product (NumPy)" in capsys.readouterr().out
    content = json.loads(target.read_text())
    assert content["machine"]["cores"] >= 1
    assert "scikit-learn" in content["versions"]
    assert {"product", "knn", "agreement"} == {row["section"] for row in content["rows"]}


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU")
def test_on_a_gpu(tmp_path: Path) -> None:
    target = tmp_path / "gpu.json"
    small = ["--queries", "1000", "--library", "5000", "--dimension", "256", "--pictures", "512", "--rounds", "2"]
    assert gpu.main([*small, "--json", str(target)]) == 0
    content = json.loads(target.read_text())
    assert content["machine"]["gpu"]
    assert not on_gpu() or [row for row in content["rows"] if row["section"] == "product"]
    right = [row["rate"] for row in content["rows"] if row["section"] == "agreement"]
    assert min(right) > 0.99
