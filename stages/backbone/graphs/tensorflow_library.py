"""TensorFlow's library and the functions of its C API, which is stable. Importing TensorFlow's Python takes longer than
loading the library, a backbone and its first pass together.

Knows no graphs.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_ubyte, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = {np.dtype(np.float32): 1, np.dtype(np.int32): 3, np.dtype(np.uint8): 4}
"""The numbers of types in TensorFlow's types.proto."""

_FILE = "libtensorflow_cc.so.2"
_DETERMINISTIC = "TF_DETERMINISTIC_OPS"  # part of a backbone's identity, as in stages.backbone.devices


class LibraryError(Exception):
    """TensorFlow's library is missing, or refuses or fails to do something; the text is its own."""


class OperationOutput(ctypes.Structure):
    """The first output of an operation; for one without outputs, the operation."""

    _fields_ = (("operation", c_void_p), ("index", c_int))


class CallStatus:
    """The status of a call, in a `with` statement, which raises LibraryError if the call failed."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._pointer = library.TF_NewStatus()

    def __enter__(self) -> Any:
        return self._pointer

    def __exit__(self, *_: object) -> None:
        failed = self._library.TF_GetCode(self._pointer)
        text = self._library.TF_Message(self._pointer).decode("utf-8", "replace")
        self._library.TF_DeleteStatus(self._pointer)
        if failed:
            raise LibraryError(text)


def tensor(library: Any, value: NDArray[Any]) -> int:
    """A tensor with a copy of the array, which belongs to the caller."""
    value = np.ascontiguousarray(value).reshape(value.shape)  # the first makes scalars arrays of one dimension
    tensor = library.TF_AllocateTensor(
        TYPES[value.dtype], (c_int64 * value.ndim)(*value.shape), value.ndim, value.nbytes
    )
    ctypes.memmove(library.TF_TensorData(tensor), value.ctypes.data, value.nbytes)
    return int(tensor)


def array(library: Any, tensor: int) -> NDArray[np.float32]:
    """A copy of a tensor of float32."""
    shape = tuple(library.TF_Dim(tensor, each) for each in range(library.TF_NumDims(tensor)))
    found = np.empty(shape, np.float32)
    if library.TF_TensorType(tensor) != TYPES[found.dtype] or library.TF_TensorByteSize(tensor) != found.nbytes:
        raise LibraryError("the output is not of float32")
    ctypes.memmove(found.ctypes.data, library.TF_TensorData(tensor), found.nbytes)
    return found


_P, _S, _I = c_void_p, c_char_p, c_int
_OUTPUTS, _POINTERS = POINTER(OperationOutput), POINTER(c_void_p)
_SIGNATURES: dict[str, tuple[Any, ...]] = {  # result, arguments
    "TF_NewStatus": (_P,),
    "TF_GetCode": (_I, _P),
    "TF_Message": (_S, _P),
    "TF_DeleteStatus": (None, _P),
    "TF_AllocateTensor": (_P, _I, POINTER(c_int64), _I, c_size_t),
    "TF_DeleteTensor": (None, _P),
    "TF_TensorData": (_P, _P),
    "TF_TensorType": (_I, _P),
    "TF_TensorByteSize": (c_size_t, _P),
    "TF_NumDims": (_I, _P),
    "TF_Dim": (c_int64, _P, _I),
    "TF_NewGraph": (_P,),
    "TF_DeleteGraph": (None, _P),
    "TF_NewOperation": (_P, _P, _S, _S),
    "TF_AddInput": (None, _P, OperationOutput),
    "TF_SetAttrString": (None, _P, _S, _S, c_size_t),
    "TF_SetAttrBool": (None, _P, _S, c_ubyte),
    "TF_SetAttrType": (None, _P, _S, _I),
    "TF_SetAttrTensor": (None, _P, _S, _P, _P),
    "TF_SetAttrShape": (None, _P, _S, POINTER(c_int64), _I),
    "TF_SetAttrIntList": (None, _P, _S, POINTER(c_int64), _I),
    "TF_FinishOperation": (_P, _P, _P),
    "TF_GraphGetTensorNumDims": (_I, _P, OperationOutput, _P),
    "TF_GraphGetTensorShape": (None, _P, OperationOutput, POINTER(c_int64), _I, _P),
    "TF_NewSessionOptions": (_P,),
    "TF_SetConfig": (None, _P, _S, c_size_t, _P),
    "TF_DeleteSessionOptions": (None, _P),
    "TF_NewSession": (_P, _P, _P, _P),
    "TF_DeleteSession": (None, _P, _P),
    "TF_SessionRun": (None, _P, _P, _OUTPUTS, _POINTERS, _I, _OUTPUTS, _POINTERS, _I, _POINTERS, _I, _P, _P),
}


@cache
def library() -> Any:
    """The library with its functions. Raises LibraryError if TensorFlow is not installed, or has another library."""
    package = find_spec("tensorflow")
    if package is None or package.origin is None:
        raise LibraryError("TensorFlow is not installed")
    os.environ[_DETERMINISTIC] = "1"
    try:
        loaded = ctypes.CDLL(str(Path(package.origin).with_name(_FILE)))
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise LibraryError(str(error)) from error
    return loaded
