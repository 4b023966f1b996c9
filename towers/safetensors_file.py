"""Reads weights in the format safetensors: a header in JSON, then numbers. Knows no architecture."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_MOST_HEADER = 64 << 20  # bytes


def read_tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """The tensors of numbers by name, as float32; integers, which no weights are, are left out. Raises ValueError for a
    damaged file."""
    numbers = np.memmap(path, np.uint8, "r")
    size = int.from_bytes(numbers[:8].tobytes(), "little")
    if size > min(_MOST_HEADER, len(numbers) - 8):
        raise ValueError(f"{path.name} is not a file of safetensors, or it ends early")
    header, body = json.loads(numbers[8 : 8 + size].tobytes()), numbers[8 + size :]
    found = {}
    for name, each in header.items():
        if name == "__metadata__" or each["dtype"] not in _TYPES:
            continue
        begin, end = each["data_offsets"]
        values = np.frombuffer(body[begin:end].tobytes(), _TYPES[each["dtype"]]).reshape(each["shape"])
        if each["dtype"] == "BF16":  # the upper half of a float32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        found[name] = values.astype(np.float32)
    return found
