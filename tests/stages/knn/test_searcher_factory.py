import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from stages.datum.contract import StageError
from stages.datum.visible_gpus import gpu_visible
from stages.knn.exact_searcher import ExactSearcher
from stages.knn.search_settings import SearchSettings, read_settings
from stages.knn.searcher_factory import SearchMachine, open_copy, open_searcher
from stages.knn.vector_set import VectorSet

LIBRARY = VectorSet(np.random.default_rng(0).normal(size=(1200, 16)).astype(np.float32))
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


@pytest.mark.parametrize("hidden", ["", "-1", "-1,0", "none", "NoDevFiles", " "])
def test_devices_can_be_hidden(hidden: str, tmp_path: Path) -> None:
    (tmp_path / "nvidia0").touch()
    assert not gpu_visible({"CUDA_VISIBLE_DEVICES": hidden}, tmp_path)
    assert gpu_visible({"CUDA_VISIBLE_DEVICES": "0"}, tmp_path)
    assert gpu_visible({"CUDA_VISIBLE_DEVICES": "GPU-5ad-1", "NVIDIA_VISIBLE_DEVICES": "all"}, tmp_path)
    assert not gpu_visible({"NVIDIA_VISIBLE_DEVICES": "void"}, tmp_path)
    assert gpu_visible({}, tmp_path)


def test_no_device_no_gpu(tmp_path: Path) -> None:
    (tmp_path / "nvidiactl").touch()
    assert not gpu_visible({"CUDA_VISIBLE_DEVICES": "0"}, tmp_path)


def test_a_process_without_a_gpu_imports_nothing_of_one() -> None:
    code = (
        "import sys, numpy as np\n"
        "from stages.knn.searcher_factory import open_searcher\n"
        "from stages.knn.vector_set import VectorSet\n"
        "from stages.knn.search_settings import SearchSettings\n"
        "open_searcher(VectorSet(np.eye(3, dtype=np.float32)), SearchSettings(), {'CUDA_VISIBLE_DEVICES': '-1'})\n"
        "unwanted = ('cuml', 'cupy', 'stages.knn.cuml_backend', 'sklearn', 'faiss', 'onnxruntime')\n"
        "print([name for name in unwanted if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("backend", ["auto", "numpy", "faiss", "sklearn"])
def test_each_cpu_backend_opens(backend: str) -> None:
    searcher = open_searcher(LIBRARY, SearchSettings(backend=backend), NO_GPU)
    assert isinstance(searcher, ExactSearcher)
    assert searcher.search(LIBRARY, 1).rows[:, 0].tolist() == list(range(1200))


def test_a_copy_that_cannot_be_made_is_reported() -> None:
    def load(module: str) -> ModuleType:
        raise ImportError(f"libonnxruntime.so:\nno such file, which {module} needs")

    said: list[str] = []
    assert open_copy(LIBRARY.prepared, None, said.append, SearchMachine(load)) is None
    assert said == [
        "ONNX Runtime does not work here (ImportError: libonnxruntime.so: no such file, which quantised_copy needs): "
        "searching with NumPy alone"
    ]


def test_cuml_without_a_gpu_says_what_to_do() -> None:
    with pytest.raises(StageError, match=r"BACKEND=cuml needs an NVIDIA GPU.*BACKEND=auto"):
        open_searcher(LIBRARY, SearchSettings(backend="cuml"), NO_GPU)


def test_settings_default_to_exact_search() -> None:
    assert read_settings({}) == SearchSettings(k=3, metric="euclidean", backend="auto", algorithm="exact")
    assert read_settings({"K": "10", "METRIC": "cosine", "BACKEND": "faiss", "ALGORITHM": "ivfpq"}).k == 10


@pytest.mark.parametrize(
    ("name", "value"), [("K", "0"), ("K", "three"), ("METRIC", "l1"), ("BACKEND", "annoy"), ("ALGORITHM", "hnsw")]
)
def test_a_bad_parameter_is_named(name: str, value: str) -> None:
    with pytest.raises(StageError, match=f"{name}="):
        read_settings({name: value})
