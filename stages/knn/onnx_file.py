"""ONNX model files, limited to graphs with fixed tensors such as a matrix product. Knows no vectors and no library.

The schema is onnx/onnx.proto3 of github.com/onnx/onnx, in the wire format of Protocol Buffers. The package onnx needs a
newer protobuf than python-pachyderm allows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ByteChunks = tuple[bytes | memoryview, ...]
"""Bytes in pieces, which are joined once: the tensors are large."""

_TYPES = {"float32": 1, "uint8": 2, "int8": 3}  # TensorProto.DataType
_IR_VERSION = 8
_OPSETS = {"": 13, "com.microsoft": 1}


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """One operation: its name and domain, and the names of its inputs and of its output."""

    operation: str
    inputs: Sequence[str]
    output: str
    domain: str = ""


@dataclass(frozen=True, slots=True)
class OnnxVariable:
    """An input or output of a model: its name, the name of a NumPy dtype, and its shape, with None for any length."""

    name: str
    dtype: str
    shape: Sequence[int | None]


def model(
    nodes: Sequence[OnnxNode], inputs: Sequence[OnnxVariable], output: OnnxVariable, tensors: Mapping[str, NDArray[Any]]
) -> bytes:
    """The bytes of a model file. nodes: in the order of execution. tensors: fixed values, by name."""
    graph = (
        *(_part(1, _node(each)) for each in nodes),
        _text(2, "graph"),
        *(_part(5, _tensor(name, values)) for name, values in tensors.items()),
        *(_part(11, _variable(each)) for each in inputs),
        _part(12, _variable(output)),
    )
    opsets = (_part(8, _joined(_text(1, domain), _number(2, version))) for domain, version in _OPSETS.items())
    return b"".join(_joined(_number(1, _IR_VERSION), *opsets, _part(7, _joined(*graph))))


def _node(node: OnnxNode) -> ByteChunks:
    names = (*(_text(1, name) for name in node.inputs), _text(2, node.output))
    return _joined(*names, _text(4, node.operation), _text(7, node.domain))


def _tensor(name: str, values: NDArray[Any]) -> ByteChunks:
    content = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return _joined(
        *(_number(1, length) for length in values.shape),
        _number(2, _TYPES[values.dtype.name]),
        _text(8, name),
        _part(9, (content.data.cast("B"),)),
    )


def _variable(variable: OnnxVariable) -> ByteChunks:
    lengths = (() if length is None else _number(1, length) for length in variable.shape)
    shape = _joined(*(_part(1, length) for length in lengths))
    tensor = _joined(_number(1, _TYPES[variable.dtype]), _part(2, shape))
    return _joined(_text(1, variable.name), _part(2, _part(1, tensor)))


def _number(field: int, value: int) -> ByteChunks:
    return (_varint(field << 3) + _varint(value),)


def _text(field: int, value: str) -> ByteChunks:
    return _part(field, (value.encode(),))


def _part(field: int, value: ByteChunks) -> ByteChunks:
    return (_varint(field << 3 | 2) + _varint(sum(map(len, value))), *value)


def _joined(*parts: ByteChunks) -> ByteChunks:
    return tuple(chunk for part in parts for chunk in part)


def _varint(value: int) -> bytes:
    """Seven bits in each byte, the lowest first; the eighth bit is set in all but the last."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
