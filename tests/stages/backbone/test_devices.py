"""GPU memory settings: their values, their conflicts and, with a GPU, their effect."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from hypothesis import given, strategies as st

from stages.backbone.backbone_spec import MODEL_FILE
from stages.backbone.devices import prepare
from stages.backbone.gpu_memory import GpuMemory, gpu_memory, total_memory
from stages.datum.contract import StageError
from tests import fake_gpus

HAS_GPU = bool(tf.config.list_physical_devices("GPU"))


@pytest.mark.parametrize(
    ("environment", "memory"),
    [
        ({}, GpuMemory(True, None)),
        ({"GPU_MEMORY_GROWTH": "true"}, GpuMemory(True, None)),
        ({"GPU_MEMORY_GROWTH": " False "}, GpuMemory(False, None)),
        ({"GPU_MEMORY_FRACTION": "0.4"}, GpuMemory(False, 0.4)),
        ({"GPU_MEMORY_FRACTION": "1", "GPU_MEMORY_GROWTH": "false"}, GpuMemory(False, 1.0)),
        ({"GPU_MEMORY_FRACTION": "", "GPU_MEMORY_GROWTH": ""}, GpuMemory(True, None)),
    ],
)
def test_settings(environment: dict[str, str], memory: GpuMemory) -> None:
    assert gpu_memory(environment) == memory


@pytest.mark.parametrize("fraction", ["0", "-1", "1.01", "nan", "inf", "half", "40%"])
def test_bad_fractions_are_refused(fraction: str) -> None:
    with pytest.raises(StageError, match=r"GPU_MEMORY_FRACTION=.*over 0 and up to 1"):
        gpu_memory({"GPU_MEMORY_FRACTION": fraction})


def test_other_bad_settings_are_refused() -> None:
    with pytest.raises(StageError, match="must be true or false"):
        gpu_memory({"GPU_MEMORY_GROWTH": "yes"})
    with pytest.raises(StageError, match="exclude each other"):
        prepare({"GPU_MEMORY_GROWTH": "true", "GPU_MEMORY_FRACTION": "0.5"})


@given(st.integers(1 << 30, 1 << 40), st.floats(0.001, 1))
def test_a_limit_is_the_fraction_in_mib(total: int, fraction: float) -> None:
    limit = GpuMemory(False, fraction).limit(total)
    assert 1 <= limit <= total >> 20
    assert abs(limit - total * fraction / (1 << 20)) < 1.01


def test_prepare_makes_results_repeatable_and_can_be_repeated() -> None:
    if HAS_GPU:
        prepare({})
    tf.constant(1.0) + 1.0  # TensorFlow is up
    if not HAS_GPU:
        assert prepare({}) == prepare({"GPU_MEMORY_FRACTION": "0.5"}) == "no GPU: computing on the CPU"
    else:
        prepare({})
    assert not tf.config.experimental.tensor_float_32_execution_enabled()


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
def test_without_a_gpu_its_memory_is_unknown() -> None:
    with pytest.raises(StageError, match="CUDA driver"):
        total_memory(0)


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="no GPU")
def test_a_fraction_limits_the_device() -> None:
    program = (
        "from stages.backbone import devices, gpu_memory; import tensorflow as tf;"
        "print(devices.prepare({'GPU_MEMORY_FRACTION': '0.1'}));"
        "d = tf.config.get_logical_device_configuration(tf.config.list_physical_devices('GPU')[0]);"
        "print(d[0].memory_limit, gpu_memory.total_memory(0) // 10 >> 20); print(float(tf.reduce_sum(tf.ones(10))))"
    )
    done = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True)
    said, limits, result = done.stdout.splitlines()
    assert "0.1 of it" in said
    assert len(set(limits.split())) == 1
    assert float(result) == 10


@pytest.mark.only_in_all
def test_a_tensor_before_the_preparation_is_an_error_that_says_so(tmp_path: Path) -> None:
    late = (
        "import tensorflow as tf; from stages.datum import contract; from stages.backbone import devices\n"
        "tf.ones(3) + 1\n"
        "try:\n  devices.prepare({})\nexcept contract.StageError as error:\n  print(error)"
    )
    (said,) = fake_gpus.python(late, tmp_path / "log")
    assert "with its own settings, since a tensor was made first: Physical devices cannot be modified" in said
    assert (tmp_path / "log").read_text() == "1 GPU, TF32\n"


@pytest.mark.only_in_all
def test_devices_are_prepared_for_the_first_model_and_again_but_not_otherwise(lite0: Path, tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from stages.datum import contract; from stages.backbone import backbones, devices\n"
        "import tensorflow as tf\n"
        f"print(backbones.load_keras(Path({str(lite0 / MODEL_FILE)!r})).count_params() > 0)\n"
        "print(tf.config.experimental.get_memory_growth(tf.config.list_physical_devices('GPU')[0]))\n"
        "print(devices.prepare({}))\n"
        "try:\n  devices.prepare({'GPU_MEMORY_GROWTH': 'false'})\nexcept contract.StageError as error:\n  print(error)"
    )
    *said, refused = fake_gpus.python(program, tmp_path / "log")
    assert said == ["True", "True", "1 GPU, memory taken: as it grows"]
    assert "the GPU's memory with other settings: " in refused
    assert (tmp_path / "log").read_text() == "1 GPU\n"
