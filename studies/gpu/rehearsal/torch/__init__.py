"""A stand-in for the few functions of PyTorch that the bound calls, by NumPy."""

from types import SimpleNamespace
from typing import Any

import numpy as np

float32 = np.float32
backends = SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False)))


class Tensor(np.ndarray[Any, Any]):
    """An array with a tensor's methods."""

    def split(self, rows: int) -> list[Any]:
        """Parts of so many rows."""
        return [self[start : start + rows] for start in range(0, len(self), rows)]

    def copy_(self, other: Any) -> Any:
        """Overwrites these numbers."""
        self[...] = other
        return self

    def cpu(self) -> Any:
        """The tensor on the processor."""
        return self

    def to(self, _device: str) -> Any:
        """A copy on the device."""
        return self.copy()


def randn(*shape: int, device: str) -> Tensor:
    """Normally distributed numbers."""
    return np.random.default_rng(0).standard_normal(shape, np.float32).view(Tensor)


def empty(*shape: int, device: str) -> Tensor:
    """A tensor of float32 with any content."""
    return np.empty(shape, np.float32).view(Tensor)


def topk(values: Any, k: int, dim: int, largest: bool) -> Any:
    """The smallest numbers' indices."""
    assert not largest
    return SimpleNamespace(indices=np.argpartition(values, k, axis=dim)[:, :k])


empty_like, matmul = np.empty_like, np.matmul


def from_numpy(values: Any) -> Tensor:
    """The same numbers as a tensor."""
    return np.asarray(values).view(Tensor)
