import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stages.datum.contract import StageError
from stages.datum.visible_gpus import gpu_visible
from stages.knn import searcher_factory
from stages.knn.backend import Backend, Vectors
from stages.knn.exact_searcher import BatchSizes, ExactSearcher
from stages.knn.search_settings import SearchSettings, read_settings
from stages.knn.searcher_factory import SearchMachine, open_searcher
from stages.knn.vector_set import VectorSet

LIBRARY = VectorSet(np.random.default_rng(0).normal(size=(1200, 16)).astype(np.float32))
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


ANY_NUMBER = BatchSizes(many=1)
"""The quick look is prepared for any number of queries."""


def machine(instructions: set[str], made: list[str]) -> SearchMachine:
    """A machine with these instruction sets; appends the name of each quick backend that it makes to `made`."""

    def load(module: str) -> Any:
        real = searcher_factory.load(module)
        if module != "quantised_copy":
            return real

        def quantised(library: Vectors, tiling: Any, centre: Vectors) -> Backend:
            made.append(real.QuantisedCopy.name)
            backend: Backend = real.QuantisedCopy(library, tiling, centre)
            return backend

        return SimpleNamespace(
            settled=real.settled, QuantisedCopy=quantised, centre_of=real.centre_of, TILING=real.TILING
        )

    return SearchMachine(lambda: instructions, load)


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


@pytest.mark.parametrize(
    ("backend", "instructions", "size", "expected"),
    [
        ("auto", {"avx512_vnni"}, 1200, "int8"),
        ("auto", {"avx_vnni", "avx2"}, 1200, "int8"),
        ("auto", {"avx2"}, 1200, None),
        ("auto", {"avx512_vnni"}, 999, None),
        ("numpy", {"avx512_vnni"}, 1200, None),
        ("faiss", {"avx512_vnni"}, 1200, None),
    ],
)
def test_a_quick_look_comes_first_if_it_pays(
    backend: str, instructions: set[str], size: int, expected: str | None
) -> None:
    made: list[str] = []
    library = LIBRARY.part(slice(0, size))
    searcher = open_searcher(
        library, SearchSettings(backend=backend), NO_GPU, print, machine(instructions, made), ANY_NUMBER
    )
    assert searcher.search(library, 1).rows[:, 0].tolist() == list(range(size))
    assert made == ([] if expected is None else [expected])


def test_a_quick_look_is_not_prepared_for_vectors_that_it_cannot_distinguish() -> None:
    made: list[str] = []
    random = np.random.default_rng(0)
    alike = VectorSet((random.normal(size=16) + 1e-5 * random.normal(size=(1200, 16))).astype(np.float32))
    vectors = alike.vectors.copy()
    vectors[::100] = random.normal(size=(12, 16))
    library = VectorSet(vectors)
    searcher = open_searcher(library, SearchSettings(), NO_GPU, print, machine({"avx512_vnni"}, made), ANY_NUMBER)
    assert searcher.search(library, 1).rows[:, 0].tolist() == list(range(1200))
    assert made == []


def test_a_quick_look_that_does_not_work_is_reported_and_skipped() -> None:
    def load(module: str) -> ModuleType:
        if module == "quantised_copy":
            raise ImportError("libonnxruntime.so:\nno such file")
        return searcher_factory.load(module)

    said: list[str] = []
    broken = SearchMachine(lambda: {"avx512_vnni"}, load)
    searcher = open_searcher(LIBRARY, SearchSettings(), NO_GPU, said.append, broken, ANY_NUMBER)
    assert searcher.search(LIBRARY, 1).rows[:, 0].tolist() == list(range(1200))
    (line,) = said
    assert "ONNX Runtime does not work here (ImportError: libonnxruntime.so: no such file)" in line


def test_cuml_without_a_gpu_says_what_to_do() -> None:
    with pytest.raises(StageError, match=r"BACKEND=cuml needs an NVIDIA GPU.*BACKEND=auto"):
        open_searcher(LIBRARY, SearchSettings(backend="cuml"), NO_GPU)


@pytest.mark.parametrize("algorithm", ["ivfflat", "ivfpq"])
def test_approximate_search_states_its_recall(algorithm: str) -> None:
    said: list[str] = []
    searcher = open_searcher(LIBRARY, SearchSettings(algorithm=algorithm, backend="faiss"), NO_GPU, said.append)
    exact = open_searcher(LIBRARY, SearchSettings(), NO_GPU).search(LIBRARY, 3)
    found = searcher.search(LIBRARY, 3)
    assert found.rows.shape == (1200, 3)
    (line,) = said
    assert line.startswith(f"faiss {algorithm}: approximate, as asked; recall@3 0.")
    assert line.endswith("measured on 200 of 1200 queries")
    sample = np.unique(np.linspace(0, 1199, 200).astype(int))
    hits = (exact.rows[sample][:, :, None] == found.rows[sample][:, None, :]).any(axis=2)
    assert f"{hits.mean():.4f}" in line
    same = (found.rows == exact.rows).all(axis=1)
    assert same.any()
    assert np.array_equal(found.distances[same], exact.distances[same])  # true distances, not quantised ones


@pytest.mark.parametrize("algorithm", ["ivfflat", "ivfpq"])
def test_a_small_library_is_searched_exactly_for_every_algorithm(algorithm: str) -> None:
    said: list[str] = []
    library = VectorSet(np.eye(3, dtype=np.float32))
    searcher = open_searcher(library, SearchSettings(algorithm=algorithm, backend="faiss"), NO_GPU, said.append)
    assert isinstance(searcher, ExactSearcher)
    assert said == [f"3 vectors are too few for {algorithm}: searching exactly"]


def test_approximate_search_leaves_out_excluded_rows() -> None:
    searcher = open_searcher(LIBRARY, SearchSettings(algorithm="ivfflat"), NO_GPU, lambda line: None)
    itself = np.arange(1200)
    assert not (searcher.search(LIBRARY, 3, exclude=itself).rows == itself[:, None]).any()
    assert searcher.search(LIBRARY.part(slice(0, 0)), 3).rows.shape == (0, 3)


def test_settings_default_to_exact_search() -> None:
    assert read_settings({}) == SearchSettings(k=3, metric="euclidean", backend="auto", algorithm="exact")
    assert read_settings({"K": "10", "METRIC": "cosine", "BACKEND": "faiss", "ALGORITHM": "ivfpq"}).k == 10


@pytest.mark.parametrize(
    ("name", "value"), [("K", "0"), ("K", "three"), ("METRIC", "l1"), ("BACKEND", "annoy"), ("ALGORITHM", "hnsw")]
)
def test_a_bad_parameter_is_named(name: str, value: str) -> None:
    with pytest.raises(StageError, match=f"{name}="):
        read_settings({name: value})


@pytest.mark.parametrize("backend", ["sklearn", "numpy"])
def test_some_backends_have_no_approximate_search(backend: str) -> None:
    with pytest.raises(StageError, match=f"BACKEND={backend} does not support ALGORITHM=ivfflat"):
        read_settings({"BACKEND": backend, "ALGORITHM": "ivfflat"})
