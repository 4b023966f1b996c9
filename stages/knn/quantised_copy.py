"""Lower bounds of all distances from a product of 8-bit integers, for few queries: they take their time for reading the
library, of which this copy is a quarter.

All vectors are shifted by roughly the library's mean, which changes no distance, and each is written as s·v + e: a
scale, 8-bit integers and a remainder. A product q·x then differs from s s'·(v·v') by at most |q| |e'| + |e| |s'v'|
(Cauchy–Schwarz). ONNX Runtime multiplies the integers with the processor's own instructions and adds the bound in the
same pass. For many queries it does not pay: see docs/decisions/eight-bit-first-look.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime

from stages.knn.backend import Distances, Floats, PreparedQueries, Vectors
from stages.knn.blas_threads import others_turn
from stages.knn.integer_vectors import Int8Array, IntegerVectors, integers, within
from stages.knn.onnx_file import OnnxNode, OnnxVariable, model

_LIBRARY_STEPS = 127
_QUERY_STEPS = 63
"""The largest integers. Two products of such a pair fit into the 16 bits in which older instructions add them."""

_LONGEST = 100_000
"""The dimension up to which sums of products fit into 32 bits."""

_SAMPLE = 256
"""Library vectors that the mean is taken of."""


@dataclass(frozen=True)
class CopyTiles:
    """The sizes of the steps, which change the time and the memory of a search and never its answer.

    columns: library rows multiplied at once. block: library vectors quantised at once, so many that NumPy releases the
    interpreter's lock nearly all the time, and so few that they stay in a core's cache.
    """

    columns: int = 8192
    block: int = 256


TILING = CopyTiles()


class QuantisedCopy:
    """A copy of a library in 8-bit integers, a quarter of its size."""

    def __init__(self, library: Vectors, centre: Vectors | None = None, tiling: CopyTiles = TILING) -> None:
        """library: float32 (n, d), C order, finite. centre: float32 (d,), another library's centre, so that queries
        are quantised once for both. Raises RuntimeError (ONNX Runtime's) if that does not work."""
        count, dimension = library.shape
        self._count = count
        self.centre = _mean(library) if centre is None else centre
        self._sessions: list[Any] = []
        self.usable = False  # until all vectors turn out to be within range
        if dimension > _LONGEST:
            return
        for start in range(0, count, tiling.columns):
            session = _product(library[start : start + tiling.columns], self.centre, tiling.block)
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
            asked = integers(queries, self.centre, _QUERY_STEPS)
        usable = within(asked)
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


def _mean(library: Vectors) -> Vectors:
    """Roughly the mean of a library, float32 (d,)."""
    some = library[:: -(-len(library) // _SAMPLE)]
    with np.errstate(over="ignore", invalid="ignore"):
        mean: Vectors = some.mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean


def _product(library: Vectors, centre: Vectors, block: int) -> Any:
    """The session of a part of the library, float32 (n, d), see `_session`; None if some of its vectors are out of
    range."""
    whole = np.empty(library.shape, np.int8)
    parts = []
    for start in range(0, len(library), block):
        parts.append(integers(library[start : start + block], centre, _LIBRARY_STEPS))
        whole[start : start + block] = parts[-1].whole
    return _session(whole, parts) if all(within(each).all() for each in parts) else None


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
