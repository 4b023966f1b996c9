"""The quick look: lower bounds of all distances from a product of 8-bit integers, three times as fast as float32.

All vectors are shifted by roughly the library's mean, which changes no distance, and each is written as s·v + e: a
scale, 8-bit integers and a remainder. A product q·x then differs from s s'·(v·v') by at most |q| |e'| + |e| |s'v'|
(Cauchy–Schwarz). ONNX Runtime multiplies the integers with the processor's own instructions and adds the bound in the
same pass. A few of a thousand rows lie within the bound; their distances are computed again, see `Certified`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime

from stages.knn.backend import BackendProbe, Distances, Floats, PreparedQueries, RoundingBound, Rows, Vectors
from stages.knn.blas_threads import in_threads, others_turn
from stages.knn.integer_vectors import Int8Array, IntegerVectors, integers, joined, within
from stages.knn.onnx_file import OnnxNode, OnnxVariable, model
from stages.knn.row_minima import GROUPS, MULTIPLE, least, room, smallest
from stages.knn.top_k import NONE

_LIBRARY_STEPS = 127
_QUERY_STEPS = 63
"""The largest integers. Two products of such a pair fit into the 16 bits in which older instructions add them."""

_OFF_CENTRE = 1 / 16
"""Of the vectors' mean squared distance from their centre: so far off another centre may be, whose bounds are then 3 %
looser. For samples of the same vectors it is a hundredth."""


@dataclass(frozen=True)
class CopyTiles:
    """The sizes of the steps, which change the time and the memory of a search and never its answer.

    columns: library rows multiplied at once. sample: library vectors that the mean is taken of. block: library vectors
    quantised at once. queries: queries multiplied at once, so that their bounds stay in a core's cache until they have
    been searched. dimension: the largest whose sums of products fit into 32 bits. groups, multiple: see
    stages.knn.row_minima. threads: None for one per core.
    """

    columns: int = 8192
    sample: int = 256
    block: int = 256
    queries: int = 128
    dimension: int = 100_000
    groups: int = GROUPS
    multiple: int = MULTIPLE
    threads: int | None = None


TILING = CopyTiles()


class QuantisedCopy:
    """A copy of a library in 8-bit integers, a quarter of its size."""

    name = "int8"
    concurrent = True

    def __init__(self, library: Vectors, tiling: CopyTiles = TILING, centre: Vectors | None = None) -> None:
        """library: float32 (n, d), C order, finite. centre: float32 (d,), another library's centre, so that queries
        are quantised once for both. Raises RuntimeError (ONNX Runtime's) if that does not work."""
        count, dimension = library.shape
        self._count = count
        self._tiling = tiling
        self.centre = centre_of(library, None, tiling.sample) if centre is None else centre
        self._products: list[_Product] = []
        self.usable = False  # until all vectors turn out to be within range
        self.rounding = RoundingBound(relative=0.0, absolute=0.0)  # the proposed distances are lower bounds themselves
        if dimension > tiling.dimension:
            return
        for start in range(0, count, tiling.columns):
            product = _product(library[start : start + tiling.columns], self.centre, tiling)
            if product is None:
                self._products = []
                return
            self._products.append(product)
        self.usable = True

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates. Gives lower bounds instead of approximations, and no rows for vectors out of
        range."""
        return self.proposed(self.ask(queries), count)

    def proposed(self, asked: PreparedQueries, count: int) -> tuple[Distances, Rows]:
        """See Asking.proposed."""
        usable, inputs = asked.inputs
        distances = np.full((len(usable), count), np.inf, np.float32)
        rows = np.full((len(usable), count), NONE, np.int64)
        known = np.flatnonzero(usable)
        for start in range(0, len(known) if self._products else 0, self._tiling.queries):
            step = slice(start, start + self._tiling.queries)
            some = known[step]
            halves, rows[some] = self._least({name: each[step] for name, each in inputs.items()}, count)
            squares = asked.factor[some, None] * halves.astype(np.float64) + asked.offset[some, None]
            distances[some] = np.nextafter(squares.astype(np.float32), np.float32(-np.inf))
        return distances, rows

    @property
    def scheme(self) -> object:
        """See Bounding.scheme."""
        return self.centre

    def ask(self, queries: Vectors) -> PreparedQueries:
        """See Bounding.ask."""
        step, parts = self._tiling.queries, []
        for start in range(0, max(1, len(queries)), step):
            with others_turn():
                parts.append(integers(queries[start : start + step], self.centre, _QUERY_STEPS))
        asked = parts[0] if len(parts) == 1 else joined(parts)
        usable = within(asked)
        factor = np.where(usable, 2.0 * asked.scale.astype(np.float64), 1.0)
        return PreparedQueries(factor, np.where(usable, asked.square, 0.0), (usable, _inputs(asked.part(usable))))

    def bounds(self, asked: PreparedQueries) -> Distances:
        """See Bounding.bounds."""
        usable, inputs = asked.inputs
        if not self.usable or not usable.any():
            return np.full((len(usable), self._count), -np.inf, np.float32)
        found = []
        for product in self._products:
            with others_turn():
                (halves,) = product.session.run(None, inputs)
            found.append(halves[:, : product.count])
        known: Distances = found[0] if len(found) == 1 else np.concatenate(found, axis=1)
        if usable.all():
            return known
        numbers = np.full((len(usable), self._count), -np.inf, np.float32)
        numbers[usable] = known
        return numbers

    def _least(self, inputs: Mapping[str, Any], count: int) -> tuple[Distances, Rows]:
        """The `count` smallest numbers of `_session` for each query, and their rows."""
        found, begin = [], 0
        for product in self._products:
            with others_turn():
                (bounds,) = product.session.run(None, inputs)
            halves, columns = least(bounds, count, self._tiling.groups)
            beyond = columns >= product.count
            halves[beyond] = np.inf
            found.append((halves, np.where(beyond, NONE, columns + begin)))
            begin += product.count
        every, proposed = (np.concatenate(each, axis=1) for each in zip(*found, strict=True))
        return smallest(every, proposed, count)


@dataclass(frozen=True)
class _Product:
    """A part of the library, ready for multiplication: its number of rows, and the model of `_session`."""

    count: int
    session: Any


def settled(library: Vectors, probe: BackendProbe, centre: Vectors) -> float:
    """The share, 0 to 1, of a probe's queries that the quick look would settle: those whose last candidate is further
    away than the bounds reach. Estimated from a sample of the library's vectors, float32 (n, d)."""
    some = library[:: -(-len(library) // len(probe.queries))]
    asked, held = integers(probe.queries, centre, _QUERY_STEPS), integers(some, centre, _LIBRARY_STEPS)
    if not within(held).all():
        return 0.0
    reach = 2 * (asked.norm * held.rest.mean() + asked.rest * held.kept.mean())
    return float(((probe.far - reach > probe.near) & within(asked)).mean())


def centre_of(library: Vectors, kept: Vectors | None = None, sample: int = TILING.sample) -> Vectors:
    """Roughly the mean of a library, float32 (d,); `kept`, another library's, where that is nearly as central. The
    segments of an index are samples of the same pictures, so they share a centre, and queries are quantised once."""
    some = library[:: -(-len(library) // sample)]
    with np.errstate(over="ignore", invalid="ignore"):
        own: Vectors = some.mean(axis=0, dtype=np.float64).astype(np.float32)
        if kept is None or kept.shape != own.shape:
            return own
        apart = float(((own - kept) ** 2).sum())
        return kept if apart <= _OFF_CENTRE * float(((some - own) ** 2).sum(axis=1).mean()) else own


def _product(library: Vectors, centre: Vectors, tiling: CopyTiles) -> _Product | None:
    """The product of a part of the library, float32 (n, d); None if some of its vectors are out of range."""
    count, dimension = library.shape
    blocks = [slice(start, min(start + tiling.block, count)) for start in range(0, count, tiling.block)]
    whole = np.zeros((room(count, tiling.multiple), dimension), np.int8)

    def quantised(block: slice) -> IntegerVectors:
        with others_turn():  # blocks this large make NumPy release the interpreter's lock nearly all the time
            part = integers(library[block], centre, _LIBRARY_STEPS)
            whole[block] = part.whole
        return part

    parts = in_threads(quantised, blocks, tiling.threads)
    if not all(within(each).all() for each in parts):
        return None
    return _Product(count, _session(whole, parts))


def _inputs(asked: IntegerVectors) -> dict[str, Any]:
    """The inputs of the model of `_session`."""
    factors = np.stack([np.ones(len(asked.norm)), asked.norm, asked.rest], axis=1) / asked.scale[:, None]
    return {"whole": asked.whole.view(np.uint8) + np.uint8(_QUERY_STEPS), "factors": factors.astype(np.float32)}


def _session(whole: Int8Array, parts: Sequence[IntegerVectors]) -> Any:
    """Computes (|x|²/2 - |q| |e'| - |e| |s'v'|) / s - s' (v·v') for each pair: half of a lower bound of |q - x|²,
    without |q|², divided by the query's scale s.

    whole: the library's integers, int8 (w, d), where `room` gives the width w; columns beyond the library get bounds
    larger than all others. They are transposed once, when the model is read. The model takes `whole`, uint8 (m, d), the
    queries' integers plus _QUERY_STEPS, and `factors`, float32 (m, 3): 1/s, |q|/s and |e|/s.
    """
    width, dimension = whole.shape
    beyond = width - sum(len(each.scale) for each in parts)

    def joined(name: str, filling: float = 0) -> Floats:
        return np.pad(np.concatenate([getattr(each, name) for each in parts]), (0, beyond), constant_values=filling)

    far = float(np.finfo(np.float32).max)
    tensors = {
        "rows": whole,
        "scale": -joined("scale"),
        "zero": np.array(_QUERY_STEPS, np.uint8),
        "one": np.array(1, np.float32),
        "bounds": np.stack([joined("square", far) / 2, -joined("rest"), -joined("kept")]).astype(np.float32),
    }
    nodes = (
        OnnxNode("Transpose", ("rows",), "library"),
        OnnxNode("MatMulIntegerToFloat", ("whole", "library", "one", "scale", "zero"), "products", "com.microsoft"),
        OnnxNode("MatMul", ("factors", "bounds"), "others"),
        OnnxNode("Add", ("others", "products"), "halves"),
    )
    inputs = (OnnxVariable("whole", "uint8", (None, dimension)), OnnxVariable("factors", "float32", (None, 3)))
    output = OnnxVariable("halves", "float32", (None, width))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the threads are ours
    options.log_severity_level = 3  # errors only: it warns about the machine
    options.enable_cpu_mem_arena = False  # it would keep the memory of the largest answer so far, for each product
    # On the processor only: a GPU may multiply float32 with fewer bits than the bounds allow for.
    session = onnxruntime.InferenceSession(model(nodes, inputs, output, tensors), options, ["CPUExecutionProvider"])
    session._model_bytes = None  # the library once more, to start again on another provider
    return session
