"""JAX, which takes a GPU's memory when the first array is made, as variables of this process say."""

from __future__ import annotations

import os
from typing import Any

import jax
import numpy as np

from stages.backbone.forward_passes import ForwardPass
from stages.backbone.gpu_memory import GpuMemory
from stages.datum.contract import StageError

_WHOLE = 0.95  # of a GPU's memory: of all of it, nothing would be left for CUDA itself
_REPEATABLE = {"xla_gpu_deterministic_ops": True}  # nor are kernels chosen by the time that they take

_prepared: GpuMemory | None = None


def prepare(memory: GpuMemory) -> None:
    """Raises StageError if JAX already runs on GPUs with other settings."""
    global _prepared
    if _prepared not in (None, memory) and gpus():
        raise StageError("JAX has already taken the GPU's memory with other settings: start another process")
    os.environ.pop("XLA_PYTHON_CLIENT_MEM_FRACTION", None)  # the old name, beside which JAX refuses the new one
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = str(not memory.growth).lower()
    if not memory.growth:
        os.environ["XLA_CLIENT_MEM_FRACTION"] = str(memory.fraction or _WHOLE)
    jax.config.update("jax_default_matmul_precision", "highest")  # products and convolutions: no TF32
    _prepared = memory


def gpus() -> list[str]:
    return [str(each.device_kind) for each in jax.local_devices() if each.platform != "cpu"]


def forward(model: Any) -> ForwardPass:
    # Keras's own pass keeps the model's state with each batch, and compiles every layer by itself.
    def pure(trained: Any, others: Any, pictures: Any) -> Any:
        return model.stateless_call(trained, others, pictures, training=False)[0]

    compiled = jax.jit(pure, compiler_options=_REPEATABLE)
    trained = [each.value for each in model.trainable_variables]
    others = [each.value for each in model.non_trainable_variables]
    return lambda pictures: np.asarray(compiled(trained, others, pictures))
