"""A stand-in for the few functions of CuPy that lookalike and the steps call: arrays stay in the processor's memory."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np


class ndarray(np.ndarray[Any, Any]):
    """An array "on the device"."""

    def get(self) -> Any:
        """The array in the processor's memory."""
        return np.asarray(self)


def asarray(values: Any) -> ndarray:
    """A copy on the device."""
    return np.array(values).view(ndarray)


def arange(start: int, stop: int) -> ndarray:
    """Integers on the device."""
    return np.arange(start, stop).view(ndarray)


sqrt = np.sqrt

cuda = SimpleNamespace(
    runtime=SimpleNamespace(memGetInfo=lambda: (1 << 30, 2 << 30)),
    MemoryPool=lambda: SimpleNamespace(malloc=None, free_all_blocks=lambda: None),
    using_allocator=lambda malloc: nullcontext(),
)
