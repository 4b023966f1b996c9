"""ONNX model files, limited to graphs with fixed tensors such as a matrix product. Knows no vectors and no library.

The schema is onnx/onnx.proto3 of github.com/onnx/onnx, in the wire format of Protocol Buffers. The package onnx needs a
newer protobuf than python-pachyderm allows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES = {"float32": 1, "uint8": 2, "int8": 3}  # TensorProto.DataType
_IR_VERSION = 8
_OPSETS = {"": 13, "com.microsoft": 1}


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: its name and domain, and the names of its inputs and of its output."""

    operation: str
    inputs: Sequence[str]
    output: str
    domain: str = ""


@dataclass(frozen=True, slots=True)
class Variable:
    """An input or output of a model: its name, the name of a NumPy dtype, and its shape, with None for any length."""

    name: str
    dtype: str
    shape: Sequence[int | None]


def model(
    nodes: Sequence[Node], inputs: Sequence[Variable], output: Variable, tensors: Mapping[str, NDArray[Any]]
) -> bytes:
    """The bytes of a model file. nodes: in the order of execution. tensors: fixed values, by name."""
    graph = [
        *(_part(1, _node(each)) for each in nodes),
        _part(2, b"graph"),
        *(_part(5, _tensor(name, values)) for name, values in tensors.items()),
        *(_part(11, _variable(each)) for each in inputs),
        _part(12, _variable(output)),
    ]
    opsets = (_part(8, _part(1, domain.encode()) + _number(2, version)) for domain, version in _OPSETS.items())
    return b"".join((_number(1, _IR_VERSION), *opsets, _part(7, b"".join(graph))))


def _node(node: Node) -> bytes:
    names = (*(_part(1, name.encode()) for name in node.inputs), _part(2, node.output.encode()))
    return b"".join(names) + _part(4, node.operation.encode()) + _part(7, node.domain.encode())


def _tensor(name: str, values: NDArray[Any]) -> bytes:
    dtype = values.dtype.newbyteorder("<")
    return b"".join(
        (
            *(_number(1, length) for length in values.shape),
            _number(2, _TYPES[values.dtype.name]),
            _part(8, name.encode()),
            _part(9, np.ascontiguousarray(values, dtype).tobytes()),
        )
    )


def _variable(variable: Variable) -> bytes:
    lengths = (b"" if length is None else _number(1, length) for length in variable.shape)
    shape = b"".join(_part(1, length) for length in lengths)
    tensor = _number(1, _TYPES[variable.dtype]) + _part(2, shape)
    return _part(1, variable.name.encode()) + _part(2, _part(1, tensor))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _part(field: int, value: bytes) -> bytes:
    return b"".join((_varint(field << 3 | 2), _varint(len(value)), value))


def _varint(value: int) -> bytes:
    """Seven bits in each byte, the lowest first; the eighth bit is set in all but the last."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
