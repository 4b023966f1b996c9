"""Gives TensorFlow's eager context a GPU that does not exist, in each process that has this directory on PYTHONPATH.

The GPU is listed, can be configured and hidden as a real one, and as with a real one not after the context has
started; nothing can be computed on it. It is the only one, and CUDA_VISIBLE_DEVICES hides it as CUDA does. When a
context starts, the number of GPUs that it may use goes as a line into the file that FAKE_GPU_LOG names, with TF32 if
that is on.
"""

import functools
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_CONTEXT = "tensorflow.python.eager.context"
_HIDDEN = {"", "-1"}


class _Finder(MetaPathFinder):
    """Changes the module of the context once it is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _CONTEXT:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None and spec.loader is not None
        execute = spec.loader.exec_module

        def executed(module: ModuleType) -> None:
            execute(module)
            _change(module)

        spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


def _change(module: Any) -> None:
    listed = module.pywrap_tfe.TF_ListPhysicalDevices
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] not in _HIDDEN
    fake = [b"/physical_device:GPU:0"] if visible else []
    module.pywrap_tfe.TF_ListPhysicalDevices = lambda: [each for each in listed() if b"GPU" not in each] + fake
    module.pywrap_tfe.TF_GetDeviceDetails = lambda index: {"device_name": "Fake"}
    module.Context.ensure_initialized = _told(module.Context.ensure_initialized)


def _told(start: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(start)
    def started(context: Any) -> None:
        first = not context._initialized
        start(context)
        if first and "FAKE_GPU_LOG" in os.environ:
            from tensorflow.python.framework import config  # noqa: PLC0415  # imports the context itself

            rounded = ", TF32" if config.tensor_float_32_execution_enabled() else ""
            with Path(os.environ["FAKE_GPU_LOG"]).open("a", encoding="ascii") as file:
                file.write(f"{len(context.get_visible_devices('GPU'))} GPU{rounded}\n")

    return started


sys.meta_path.insert(0, _Finder())
