"""The backends of Keras: which one is chosen, how each is set up (by stand-ins for JAX and PyTorch), and the features
stage on the real ones where they are installed."""

import hashlib
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
from numpy.typing import NDArray

from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, parse_spec
from stages.backbone.backends import keras_backend
from stages.backbone.embedder_factory import embedder
from stages.backbone.gpu_memory import GpuMemory
from stages.datum.contract import StageError
from stages.files.packs import PackPicture, read_pack
from stages.files.tables.image_table import ImageTable
from stages.record.framing import PAD, Framing
from stages.record.sources import Source
from tests.stages.file_trees import tree
from tests.stages.made_packs import pixels_of, write_pixels

GROWING, PART, WHOLE = GpuMemory(True, None), GpuMemory(False, 0.4), GpuMemory(False, None)


def installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(keras_backend, "find_spec", lambda name: object() if name in names else None)


def test_a_missing_backend_is_named_with_the_one_that_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed(monkeypatch, "torch")
    fresh = {"KERAS_HOME": str(tmp_path)}
    keras_backend.check({"KERAS_BACKEND": "torch"})
    with pytest.raises(
        StageError, match=r"on TensorFlow, which is not installed here: .* set KERAS_BACKEND=torch for Py"
    ):
        keras_backend.check(fresh)
    with pytest.raises(StageError, match="on JAX, which is not installed"):
        keras_backend.check({"KERAS_BACKEND": "jax"})
    with pytest.raises(StageError, match="KERAS_BACKEND=numpy: must be one of tensorflow, jax, torch"):
        keras_backend.check({"KERAS_BACKEND": "numpy"})
    installed(monkeypatch)
    with pytest.raises(StageError, match=r"not installed here: install it$"):
        keras_backend.check(fresh)
    (tmp_path / "keras.json").write_text("{")
    keras_backend.check(fresh)  # Keras decides by itself


def test_trainings_are_for_tensorflow() -> None:
    keras_backend.check_training({"KERAS_BACKEND": "tensorflow"})
    with pytest.raises(
        StageError, match="trained on TensorFlow alone, and KERAS_BACKEND is jax: set KERAS_BACKEND=tensorflow"
    ):
        keras_backend.check_training({"KERAS_BACKEND": "jax"})


@pytest.mark.skipif(find_spec("jax") is not None, reason="JAX is installed")
def test_a_program_on_a_missing_backend_ends_with_one_line(tmp_path: Path) -> None:
    push = [sys.executable, "-m", "stages.zoo", "efficientnet-lite0", "--out", str(tmp_path)]
    done = subprocess.run(push, env={**os.environ, "KERAS_BACKEND": "jax"}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "Keras is to compute on JAX, which is not installed here" in done.stderr


Loader = Callable[[str, Any], Any]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loader]:
    """Imports the module of a backend with a stand-in for that backend's package."""
    names = []

    def load(name: str, package: Any) -> Any:
        monkeypatch.setitem(sys.modules, name, package)
        names.append(f"stages.backbone.backends.{name}_devices")
        sys.modules.pop(names[-1], None)
        return importlib.import_module(names[-1])

    monkeypatch.setattr(os, "environ", dict(os.environ))
    yield load
    for name in names:
        del sys.modules[name]


class Jax(ModuleType):
    """JAX with some GPUs: settings are noted, and a function is compiled by being called."""

    def __init__(self, *gpus: str) -> None:
        super().__init__("jax")
        self.noted: dict[str, Any] = {}
        self.config = SimpleNamespace(update=self.noted.__setitem__)
        self.gpus = gpus

    def local_devices(self) -> list[Any]:
        found = [SimpleNamespace(platform="gpu", device_kind=name) for name in self.gpus]
        return found or [SimpleNamespace(platform="cpu", device_kind="cpu")]

    def jit(self, function: Any, compiler_options: Any) -> Any:
        self.noted |= compiler_options
        return function


@pytest.mark.parametrize(
    ("memory", "variables"),
    [(GROWING, ("false", None)), (PART, ("true", "0.4")), (WHOLE, ("true", "0.95"))],
)
def test_jax_takes_memory_as_set_and_rounds_nothing(
    module: Loader, memory: GpuMemory, variables: tuple[str, str | None]
) -> None:
    package = Jax("NVIDIA H200")
    os.environ |= {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.9"}
    jax_devices = module("jax", package)
    jax_devices.prepare(memory)
    jax_devices.prepare(memory)
    said = os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"], os.environ.get("XLA_CLIENT_MEM_FRACTION")
    assert said == variables
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION" not in os.environ
    assert package.noted == {"jax_default_matmul_precision": "highest"}
    assert jax_devices.gpus() == ["NVIDIA H200"]
    with pytest.raises(StageError, match="JAX has already taken the GPU's memory with other settings"):
        jax_devices.prepare(GpuMemory(False, 0.7))


def test_jax_without_a_gpu_takes_any_settings_in_any_order(module: Loader) -> None:
    jax_devices = module("jax", Jax())
    for memory in (GROWING, PART, WHOLE):
        jax_devices.prepare(memory)
    assert jax_devices.gpus() == []


def test_a_pass_on_jax_is_compiled_without_what_may_change_sums(module: Loader) -> None:
    def call(trained: Any, others: Any, pictures: Any, training: bool) -> Any:
        assert not training
        return pictures @ np.array(trained).T + others[0], others

    model = SimpleNamespace(
        trainable_variables=[SimpleNamespace(value=[1.0, 2.0])],
        non_trainable_variables=[SimpleNamespace(value=3.0)],
        stateless_call=call,
    )
    package = Jax()
    forward = module("jax", package).forward(model)
    assert forward(np.ones((1, 2))).tolist() == [[6.0]]
    assert package.noted == {"xla_gpu_deterministic_ops": True}


class Torch(ModuleType):
    """PyTorch with some GPUs: settings are noted."""

    def __init__(self, *gpus: str) -> None:
        super().__init__("torch")
        self.noted: list[Any] = []
        self.use_deterministic_algorithms = self.noted.append
        self.cuda = SimpleNamespace(
            set_per_process_memory_fraction=lambda *given: self.noted.append(given),
            get_device_name=lambda number: gpus[number],
            device_count=lambda: len(gpus),
        )
        self.backends = SimpleNamespace(
            cudnn=SimpleNamespace(benchmark=True, allow_tf32=True),
            cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)),
        )


def torch_devices(module: Loader, monkeypatch: pytest.MonkeyPatch, package: Torch, kind: str) -> Any:
    place = SimpleNamespace(device=SimpleNamespace(type=kind))
    monkeypatch.setattr(keras.ops, "zeros", lambda shape: place)
    return module("torch", package)


def test_pytorch_is_repeatable_and_takes_at_most_its_part(module: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Torch("NVIDIA L4", "NVIDIA L4")
    found = torch_devices(module, monkeypatch, package, "cuda")
    found.prepare(GROWING)
    assert package.noted == [True]
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    settings = package.backends
    assert not any((settings.cudnn.benchmark, settings.cudnn.allow_tf32, settings.cuda.matmul.allow_tf32))
    found.prepare(PART)
    assert package.noted[1:] == [True, (0.4, 0), (0.4, 1)]
    with pytest.raises(StageError, match="GPU_MEMORY_GROWTH=false: PyTorch takes memory as it needs it, so remove it"):
        found.prepare(WHOLE)
    assert found.gpus() == ["NVIDIA L4", "NVIDIA L4"]


@pytest.mark.parametrize(("kind", "gpus"), [("cpu", []), ("mps", ["mps"])])
def test_pytorch_computes_where_keras_puts_its_tensors(
    module: Loader, monkeypatch: pytest.MonkeyPatch, kind: str, gpus: list[str]
) -> None:
    found = torch_devices(module, monkeypatch, Torch("NVIDIA L4"), kind)
    assert found.gpus() == gpus
    if not gpus:
        found.prepare(WHOLE)


def features(backend: str, models: Path, packs: str, out: Path, processors: set[int]) -> dict[str, bytes]:
    """The files that a process of the stage writes on these processors."""
    command = ["-m", "stages.features", f"--input=models={models}", f"--input=pictures={packs}", f"--out={out}"]
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "KERAS_BACKEND": backend},
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return tree(out)


@pytest.mark.only_in_all
@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_the_stage_gives_the_same_bytes_on_any_number_of_cores_and_names_its_backend(
    backend: str, lite0: Path, tiles: NDArray[np.uint8], tmp_path: Path
) -> None:
    if find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    pictures = {hashlib.sha256(each.tobytes()).hexdigest(): each for each in tiles}
    rows = [PackPicture(id, (Source(f"{id[:4]}.png", id),), (96, 96)) for id in sorted(pictures)]
    write_pixels(tmp_path / "library/07/aaaa.pack", Framing(96, PAD), rows, [pictures[each.id] for each in rows])
    every = os.sched_getaffinity(0)
    given = f"{tmp_path}::library/07"
    one, two = (features(backend, lite0, given, tmp_path / f"{len(some)}", some) for some in ({min(every)}, every))
    assert one == two
    (table,) = (tmp_path / "1").rglob("*.parquet")
    assert ImageTable.read(table).origin.backend == backend
    spec = parse_spec((lite0 / SPEC_FILE).read_bytes())
    (vectors,) = (np.load(each) for each in (tmp_path / "1").rglob("*.npy"))
    ours = embedder(lite0 / MODEL_FILE, spec, {})(pixels_of(read_pack(tmp_path / "library/07/aaaa.pack")))
    assert np.abs(vectors - ours).max() < 1e-5
