"""Lower bounds of all distances from a product of 8-bit integers, for few queries: they take their time for reading the
library, of which this copy is a quarter.

All vectors are shifted by roughly the library's mean, which changes no distance, and each is written as s·v + e: a
scale, 8-bit integers and a remainder. A product q·x then differs from s s'·(v·v') by at most |q| |e'| + |e| |s'v'|
(Cauchy–Schwarz). ONNX Runtime multiplies the integers with the processor's own instructions and adds the bound in the
same pass. For many queries it does not pay: see docs/decisions/eight-bit-first-look.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import onnxruntime

from stages.knn.backend import SINGLE, Distances, Floats, Mask, PreparedQueries, Vectors, gamma
from stages.knn.blas_threads import others_turn
from stages.knn.onnx_file import OnnxNode, OnnxVariable, model
from stages.knn.vector_set import PreparedRows

Int8Array = np.ndarray[Any, np.dtype[np.int8]]

_FARTHEST, _FINEST = 1e9, 1e-9
"""The range of norms and scales in which nothing overflows or vanishes in float32. Others get no bounds."""

_ROUNDINGS = 16 * SINGLE
"""More than the sum of a bound's roundings, relative to |q|² + |x|²: 4 units of float32 from shifting both vectors, 6
from |x|²/2, which is rounded most often, and 3 from the product of integers, which is no larger."""

_NOTHING = 1e-16
"""More than a norm loses through squares that vanish in float32, or through the errors of subnormal numbers."""

_LIBRARY_STEPS = 127
_QUERY_STEPS = 63
"""The largest integers. Two products of such a pair fit into the 16 bits in which older instructions add them."""

_LONGEST = 100_000
"""The dimension up to which sums of products fit into 32 bits."""

_SAMPLE = 256
"""Library vectors that the mean is taken of."""

_PRODUCT = 10 << 20
"""Bytes of integers that are multiplied at once: so many that what is freed of them goes back to the system. Blocks of
3 MiB stayed in the heap, three times the copy."""

_BLOCK = 256
"""Library vectors quantised at once: so many that NumPy releases the interpreter's lock nearly all the time, and so few
that they stay in a core's cache."""


@dataclass(frozen=True)
class IntegerVectors:
    """n vectors as scale · whole + rest.

    whole: int8 (n, d). The others are (n,): scale float32; square float64, a lower bound of the squared norm; norm,
    rest and kept float64, upper bounds of the norms of the vector, of rest and of scale · whole. All allow for the
    roundings of a bound that is computed from them.
    """

    whole: Int8Array
    scale: Distances
    square: Floats
    norm: Floats
    rest: Floats
    kept: Floats

    def part(self, chosen: Mask) -> "IntegerVectors":
        """Some of them."""
        return IntegerVectors(**{each.name: getattr(self, each.name)[chosen] for each in fields(self)})


class QuantisedCopy:
    """A copy of a library in 8-bit integers, a quarter of its size."""

    def __init__(self, library: PreparedRows, centre: Vectors | None = None) -> None:
        """library: float32 (n, d), C order, finite, of which some rows are read at a time. centre: float32 (d,),
        another library's centre, so that queries are quantised once for both. Raises RuntimeError (ONNX Runtime's) if
        that does not work."""
        count, dimension = library.shape
        self._count = count
        self.centre = _mean(library) if centre is None else centre
        self._sessions: list[Any] = []
        self.usable = False  # until all vectors turn out to be within range
        if dimension > _LONGEST:
            return
        step = max(1, _PRODUCT // dimension)
        for start in range(0, count, step):
            session = _product(library, slice(start, min(start + step, count)), self.centre)
            if session is None:
                self._sessions = []
                return
            self._sessions.append(session)
        self.usable = True

    @property
    def scheme(self) -> object:
        """See BoundsProvider.scheme."""
        return self.centre

    def ask(self, queries: Vectors) -> PreparedQueries:
        """See BoundsProvider.ask."""
        with others_turn():
            asked = _integers(queries, self.centre, _QUERY_STEPS)
        usable = _within(asked)
        factor = np.where(usable, 2.0 * asked.scale.astype(np.float64), 1.0)
        return PreparedQueries(factor, np.where(usable, asked.square, 0.0), (usable, _inputs(asked.part(usable))))

    def bounds(self, asked: PreparedQueries) -> Distances:
        """See BoundsProvider.bounds."""
        usable, inputs = asked.inputs
        if not self.usable or not usable.any():
            return np.full((len(usable), self._count), -np.inf, np.float32)
        found = []
        for session in self._sessions:
            with others_turn():
                found += session.run(None, inputs)
        known: Distances = found[0] if len(found) == 1 else np.concatenate(found, axis=1)
        if usable.all():
            return known
        numbers = np.full((len(usable), self._count), -np.inf, np.float32)
        numbers[usable] = known
        return numbers


def _mean(library: PreparedRows) -> Vectors:
    """Roughly the mean of a library, float32 (d,)."""
    some = library[:: -(-len(library) // _SAMPLE)]
    with np.errstate(over="ignore", invalid="ignore"):
        mean: Vectors = some.mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean


def _integers(vectors: Vectors, centre: Vectors, steps: int) -> IntegerVectors:
    """The vectors minus the centre, float32 (d,), as integers from -steps to steps; any values for those that are not
    `_within`."""
    roundings = gamma(vectors.shape[1] + 8, SINGLE)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        moved = vectors - centre
        squares = np.einsum("ij,ij->i", moved, moved).astype(np.float64)
        furthest = np.maximum(moved.max(axis=1), -moved.min(axis=1))
        scale = np.maximum(furthest / np.float32(steps), np.float32(_FINEST))
        numbers = moved * (1 / scale)[:, None]
        np.rint(numbers, out=numbers)
        whole = numbers.astype(np.int8)
        numbers *= scale[:, None]
        kept = _norm(np.einsum("ij,ij->i", numbers, numbers), roundings)
        numbers -= moved
        rest = _norm(np.einsum("ij,ij->i", numbers, numbers), roundings) + _ROUNDINGS * kept
        least_square = squares * (1 - roundings) * (1 - _ROUNDINGS)
    return IntegerVectors(whole, scale, least_square, _norm(squares, roundings), rest, kept)


def _norm(squares: "Distances | Floats", roundings: float) -> Floats:
    norms: Floats = np.sqrt(squares.astype(np.float64) * (1 + roundings)) * (1 + 2 * _ROUNDINGS) + _NOTHING
    return norms


def _within(vectors: IntegerVectors) -> Mask:
    """Which of them are short enough for the bounds and finite."""
    short: Mask = (vectors.norm <= _FARTHEST) & np.isfinite(vectors.scale)
    return short


def _product(library: PreparedRows, some: slice, centre: Vectors) -> Any:
    """The session of some rows of the library, see `_session`; None if some of its vectors are out of range."""
    whole = np.empty((some.stop - some.start, library.shape[1]), np.int8)
    parts = []
    for start in range(some.start, some.stop, _BLOCK):
        parts.append(_integers(library[start : min(start + _BLOCK, some.stop)], centre, _LIBRARY_STEPS))
        whole[start - some.start : start - some.start + _BLOCK] = parts[-1].whole
    return _session(whole, parts) if all(_within(each).all() for each in parts) else None


def _inputs(asked: IntegerVectors) -> dict[str, Any]:
    """The inputs of the model of `_session`."""
    factors = np.stack([np.ones(len(asked.norm)), asked.norm, asked.rest], axis=1) / asked.scale[:, None]
    return {"whole": asked.whole.view(np.uint8) + np.uint8(_QUERY_STEPS), "factors": factors.astype(np.float32)}


def _session(whole: Int8Array, parts: Sequence[IntegerVectors]) -> Any:
    """Computes (|x|²/2 - |q| |e'| - |e| |s'v'|) / s - s' (v·v') for each pair: half of a lower bound of |q - x|²,
    without |q|², divided by the query's scale s.

    whole: the library's integers, int8 (n, d). They are transposed once, when the model is read. The model takes
    `whole`, uint8 (m, d), the queries' integers plus _QUERY_STEPS, and `factors`, float32 (m, 3): 1/s, |q|/s and |e|/s.
    """
    count, dimension = whole.shape

    def joined(name: str) -> Floats:
        numbers: Floats = np.concatenate([getattr(each, name) for each in parts])
        return numbers

    tensors = {
        "rows": whole,
        "scale": -joined("scale"),
        "zero": np.array(_QUERY_STEPS, np.uint8),
        "one": np.array(1, np.float32),
        "bounds": np.stack([joined("square") / 2, -joined("rest"), -joined("kept")]).astype(np.float32),
    }
    nodes = (
        OnnxNode("Transpose", ("rows",), "library"),
        OnnxNode("MatMulIntegerToFloat", ("whole", "library", "one", "scale", "zero"), "products", "com.microsoft"),
        OnnxNode("MatMul", ("factors", "bounds"), "others"),
        OnnxNode("Add", ("others", "products"), "halves"),
    )
    inputs = (OnnxVariable("whole", "uint8", (None, dimension)), OnnxVariable("factors", "float32", (None, 3)))
    output = OnnxVariable("halves", "float32", (None, count))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the threads are ours
    options.log_severity_level = 3  # errors only: it warns about the machine
    options.enable_cpu_mem_arena = False  # it would keep the memory of the largest answer so far, for each product
    # On the processor only: a GPU may multiply float32 with fewer bits than the bounds allow for.
    session = onnxruntime.InferenceSession(model(nodes, inputs, output, tensors), options, ["CPUExecutionProvider"])
    session._model_bytes = None  # the library once more, to start again on another provider
    return session
