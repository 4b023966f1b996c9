"""Graphs of TensorFlow's operations, and sessions that run them. Knows no networks."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from ctypes import c_int64, c_void_p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.backbone.graphs.tensorflow_library import TYPES, CallStatus, OperationOutput, array, library, tensor

_NO_GPUS = b"\x0a\x07\x0a\x03GPU\x10\x00"  # of ConfigProto: device_count {"GPU": 0}
_THREADS = b"\x10"  # of ConfigProto: the key of intra_op_parallelism_threads


class TensorShape(tuple[int, ...]):
    """The shape of a tensor, as the value of an attribute."""


AttributeValue = bool | str | np.dtype[Any] | NDArray[Any] | TensorShape | list[int]
"""The value of an attribute of an operation. A dtype is a type, and an array a tensor."""


class Placeholder(NamedTuple):
    """The place of a value that each run is given, and the value to compute with."""

    place: OperationOutput
    value: OperationOutput


FeedItem = tuple[Placeholder, NDArray[Any]]
"""The value of a placeholder in one run."""


class GraphVariable(NamedTuple):
    handle: OperationOutput
    value: NDArray[Any]  # that it gets before the first run
    read: OperationOutput  # what is read from it


class OperationGraph:
    """A graph that grows by one operation after the other. Belongs to one thread, until it has a session."""

    def __init__(self) -> None:
        """Raises LibraryError if TensorFlow is not installed, or its library is another one than expected."""
        self.library = library()
        self.pointer = self.library.TF_NewGraph()
        weakref.finalize(self, self.library.TF_DeleteGraph, self.pointer).atexit = False
        self.variables: list[GraphVariable] = []
        self._count = 0

    def add(self, kind: str, *inputs: OperationOutput, **attributes: AttributeValue) -> OperationOutput:
        """Adds an operation of that kind.

        Raises LibraryError if there is no such kind, or if the inputs do not fit it.
        """
        self._count += 1
        operation = self.library.TF_NewOperation(self.pointer, kind.encode(), f"{kind}_{self._count}".encode())
        for each in inputs:
            self.library.TF_AddInput(operation, each)
        for name, value in attributes.items():
            self._set(operation, name.encode(), value)
        with CallStatus(self.library) as status:
            return OperationOutput(self.library.TF_FinishOperation(operation, status), 0)

    def constant(self, value: NDArray[Any]) -> OperationOutput:
        """Adds a constant, with which TensorFlow may compute ahead."""
        return self.add("Const", dtype=value.dtype, value=value)

    def placeholder(self, dtype: np.dtype[Any], shape: Sequence[int]) -> Placeholder:
        """Adds the place of a value that each run is given.

        TensorFlow does not rely on the shape of a value that is given to a session, as it does on that of a function's
        argument, and would sum in another order. So it is ensured.
        """
        place = self.add("Placeholder", dtype=dtype, shape=TensorShape(shape))
        return Placeholder(place, self.add("EnsureShape", place, T=dtype, shape=TensorShape(shape)))

    def variable(self, value: NDArray[Any]) -> OperationOutput:
        """Adds a variable, with which TensorFlow cannot compute ahead, unless this very value has one; returns what is
        read from it."""
        for each in self.variables:
            if each.value is value:
                return each.read
        name = f"variable_{len(self.variables)}"
        handle = self.add("VarHandleOp", dtype=value.dtype, shape=TensorShape(value.shape), shared_name=name)
        self.variables.append(GraphVariable(handle, value, self.add("ReadVariableOp", handle, dtype=value.dtype)))
        return self.variables[-1].read

    def shape(self, output: OperationOutput) -> list[int]:
        """The shape of an output, -1 where it is not known. Raises LibraryError if nothing is known."""
        with CallStatus(self.library) as status:
            count = self.library.TF_GraphGetTensorNumDims(self.pointer, output, status)
        found = (c_int64 * max(count, 0))()
        with CallStatus(self.library) as status:
            self.library.TF_GraphGetTensorShape(self.pointer, output, found, count, status)
        return list(found)

    def _set(self, operation: int, name: bytes, value: AttributeValue) -> None:
        library = self.library
        if isinstance(value, str):
            library.TF_SetAttrString(operation, name, value.encode(), len(value.encode()))
        elif isinstance(value, bool):
            library.TF_SetAttrBool(operation, name, value)
        elif isinstance(value, np.dtype):
            library.TF_SetAttrType(operation, name, TYPES[value])
        elif isinstance(value, np.ndarray):
            copied = tensor(library, value)
            try:
                with CallStatus(library) as status:
                    library.TF_SetAttrTensor(operation, name, copied, status)
            finally:
                library.TF_DeleteTensor(copied)
        else:
            setter = library.TF_SetAttrShape if isinstance(value, TensorShape) else library.TF_SetAttrIntList
            setter(operation, name, (c_int64 * len(value))(*value), len(value))


class GraphSession:
    """Runs a graph, whose variables it gives their values. May be used from several threads at once."""

    def __init__(self, graph: OperationGraph, threads: int = 0) -> None:
        """threads: those that compute one operation, at most 127; 0 for one on each core. The first session of a
        process decides for all of them. Raises LibraryError as `run` does."""
        variables, graph.variables = graph.variables, []  # the session has copies of their values
        places = [graph.add("Placeholder", dtype=each.value.dtype) for each in variables]
        targets = [
            graph.add("AssignVariableOp", each.handle, place, dtype=each.value.dtype)
            for each, place in zip(variables, places, strict=True)
        ]
        self._graph = graph  # which must stay as long as the session
        self._library = library = graph.library
        options = library.TF_NewSessionOptions()
        config = _NO_GPUS + _THREADS + bytes([min(threads, 127)])
        with CallStatus(library) as status:
            library.TF_SetConfig(options, config, len(config), status)
        with CallStatus(library) as status:
            self._session = library.TF_NewSession(graph.pointer, options, status)
        weakref.finalize(self, _ended, library, self._session).atexit = False
        library.TF_DeleteSessionOptions(options)
        self._run([(place, each.value) for each, place in zip(variables, places, strict=True)], [], targets)

    def run(self, given: Sequence[FeedItem], wanted: OperationOutput) -> NDArray[np.float32]:
        """The value of an output of float32. Raises LibraryError if an operation fails."""
        (found,) = self._run([(each.place, value) for each, value in given], [wanted], [])
        try:
            return array(self._library, found)
        finally:
            self._library.TF_DeleteTensor(found)

    def _run(
        self,
        given: Sequence[tuple[OperationOutput, NDArray[Any]]],
        wanted: Sequence[OperationOutput],
        targets: Sequence[OperationOutput],
    ) -> list[int]:
        library = self._library
        tensors = [tensor(library, value) for _, value in given]
        found = (c_void_p * len(wanted))()
        try:
            with CallStatus(library) as status:
                library.TF_SessionRun(
                    self._session,
                    None,
                    (OperationOutput * len(given))(*(place for place, _ in given)),
                    (c_void_p * len(given))(*tensors),
                    len(given),
                    (OperationOutput * len(wanted))(*wanted),
                    found,
                    len(wanted),
                    (c_void_p * len(targets))(*(each.operation for each in targets)),
                    len(targets),
                    None,
                    status,
                )
        finally:
            for each in tensors:
                library.TF_DeleteTensor(each)
        return list(found)


def _ended(library: Any, session: int) -> None:
    """Frees a session, and the values of its variables."""
    with CallStatus(library) as status:
        library.TF_DeleteSession(session, status)
