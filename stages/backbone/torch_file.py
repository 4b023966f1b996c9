"""Reads weights in PyTorch's old file format (before 1.6: pickles, then raw storages), without PyTorch.

Knows no architecture. A pickle can run any code, so the unpickler here builds only tensors and dictionaries.
"""

import math
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from stages.datum.contract import StageError

# The first two pickles of a file, see torch/serialization.py: _legacy_save.
_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_PROTOCOL_VERSION = 1001
_STORAGES = {"FloatStorage": "<f4", "LongStorage": "<i8"}


class _Storage:
    """Numbers that the pickle names before they come in the file: `values` is filled once they have been read."""

    def __init__(self, dtype: str, count: int) -> None:
        self.dtype = np.dtype(dtype)
        self.count = count
        self.values: NDArray[Any] = np.empty(0, self.dtype)


class _Tensor:
    """A view of a storage: strides and offset count elements, as in PyTorch."""

    def __init__(
        self, storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object
    ) -> None:
        self.storage, self.offset, self.shape, self.strides = storage, offset, shape, strides

    def array(self) -> NDArray[Any]:
        size = self.storage.dtype.itemsize
        last = self.offset + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        if self.offset < 0 or min(self.strides, default=0) < 0 or last >= len(self.storage.values):
            raise ValueError("a tensor reaches beyond its storage")
        if math.prod(self.shape) > len(self.storage.values):  # strides of 0 repeat numbers without end
            raise ValueError("a tensor has more numbers than its storage")
        return np.lib.stride_tricks.as_strided(
            self.storage.values[self.offset :], self.shape, [step * size for step in self.strides]
        ).copy(order="C")


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Tensor
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        raise pickle.UnpicklingError(f"it uses {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _device, count, _view = pid
        if kind != "storage":
            raise pickle.UnpicklingError(f"unknown persistent object {kind!r}")
        return self.storages.setdefault(key, _Storage(dtype, count))


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a state dictionary by name: C-contiguous, float32 or int64, in PyTorch's layout.

    Raises StageError if the file has another format, holds anything but tensors, or is truncated.
    """
    try:
        with path.open("rb") as file:
            return _read(file)
    except OSError as error:
        raise StageError(f"the weights {path} cannot be read: {error.strerror}") from error
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise StageError(
            f"{path.name} is not a PyTorch weights file of the old format, or it is damaged: {error}"
        ) from error


def _read(file: BinaryIO) -> dict[str, NDArray[Any]]:
    if (_Unpickler(file).load(), _Unpickler(file).load()) != (_MAGIC_NUMBER, _PROTOCOL_VERSION):
        raise ValueError("it does not begin with the format's magic number")
    if not _Unpickler(file).load()["little_endian"]:
        raise ValueError("it was written on a big-endian machine")
    size = os.fstat(file.fileno()).st_size
    body = _Unpickler(file)
    tensors = body.load()
    for key in _Unpickler(file).load():
        storage = body.storages[key]
        count = int.from_bytes(file.read(8), "little")
        if count != storage.count or count * storage.dtype.itemsize > size - file.tell():
            raise ValueError("it ends early")
        data = file.read(count * storage.dtype.itemsize)
        storage.values = np.frombuffer(data, storage.dtype)
    return {name: tensor.array() for name, tensor in tensors.items()}
