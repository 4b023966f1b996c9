"""The quick look: lower bounds of all distances from a product of 8-bit integers, three times as fast as float32.

All vectors are shifted by roughly the library's mean, which changes no distance, and each is written as s·v + e: a
scale, 8-bit integers and a remainder. A product q·x then differs from s s'·(v·v') by at most |q| |e'| + |e| |s'v'|
(Cauchy–Schwarz). ONNX Runtime multiplies the integers with the processor's own instructions and adds the bound in the
same pass. A few of a thousand rows lie within the bound; their distances are computed again, see `Certified`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import onnxruntime

from stages.knn.backend import SINGLE, Asked, Distances, Floats, Mask, Probe, Rounding, Rows, Vectors, gamma
from stages.knn.onnxfile import Node, Variable, model
from stages.knn.selection import GROUPS, MULTIPLE, least, room, smallest
from stages.knn.threads import in_threads, others_turn
from stages.knn.topk import NONE

Wholes = np.ndarray[Any, np.dtype[np.int8]]

_LIBRARY_STEPS = 127
_QUERY_STEPS = 63
"""The largest integers. Two products of such a pair fit into the 16 bits in which older instructions add them."""

_FARTHEST, _FINEST = 1e9, 1e-9
"""The range of norms and scales in which nothing overflows or vanishes in float32. Others get no quick look."""

_ROUNDINGS = 16 * SINGLE
"""More than the sum of a bound's roundings, relative to |q|² + |x|²: 4 units of float32 from shifting both vectors, 6
from |x|²/2, which is rounded most often, and 3 from the product of integers, which is no larger."""

_NOTHING = 1e-16
"""More than a norm loses through squares that vanish in float32, or through the errors of subnormal numbers."""


@dataclass(frozen=True)
class Tiling:
    """The sizes of the steps, which change the time and the memory of a search and never its answer.

    columns: library rows multiplied at once. sample: library vectors that the mean is taken of. block: library vectors
    quantised at once. queries: queries multiplied at once, so that their bounds stay in a core's cache until they have
    been searched. dimension: the largest whose sums of products fit into 32 bits. groups, multiple: see
    stages.knn.selection. threads: None for one per core.
    """

    columns: int = 8192
    sample: int = 256
    block: int = 256
    queries: int = 128
    dimension: int = 100_000
    groups: int = GROUPS
    multiple: int = MULTIPLE
    threads: int | None = None


TILING = Tiling()


@dataclass(frozen=True)
class _Quantised:
    """n vectors as scale · whole + rest.

    whole: int8 (n, d). The others are (n,): scale float32; square float64, a lower bound of the squared norm; norm,
    rest and kept float64, upper bounds of the norms of the vector, of rest and of scale · whole. All allow for the
    roundings of a bound that is computed from them.
    """

    whole: Wholes
    scale: Distances
    square: Floats
    norm: Floats
    rest: Floats
    kept: Floats

    def part(self, chosen: Mask) -> "_Quantised":
        """Some of them."""
        return _Quantised(**{each.name: getattr(self, each.name)[chosen] for each in fields(self)})


class Quantised:
    """A copy of a library in 8-bit integers, a quarter of its size."""

    name = "int8"
    concurrent = True

    def __init__(self, library: Vectors, tiling: Tiling = TILING, centre: Vectors | None = None) -> None:
        """library: float32 (n, d), C order, finite. centre: float32 (d,), another library's centre, so that queries
        are quantised once for both. Raises RuntimeError (ONNX Runtime's) if that does not work."""
        count, dimension = library.shape
        self._count = count
        self._tiling = tiling
        self.centre = _centre(library, tiling.sample) if centre is None else centre
        self._products: list[_Product] = []
        self.usable = False  # until all vectors turn out to be within range
        self.rounding = Rounding(relative=0.0, absolute=0.0)  # the proposed distances are lower bounds themselves
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
        distances = np.full((len(queries), count), np.inf, np.float32)
        rows = np.full((len(queries), count), NONE, np.int64)
        for start in range(0, len(queries) if self._products else 0, self._tiling.queries):
            with others_turn():
                asked = _quantised(queries[start : start + self._tiling.queries], self.centre, _QUERY_STEPS)
            usable = _within(asked)
            if usable.any():
                step = start + np.flatnonzero(usable)
                distances[step], rows[step] = self._bounded(asked.part(usable), count)
        return distances, rows

    @property
    def scheme(self) -> object:
        """See Bounding.scheme."""
        return self.centre

    def ask(self, queries: Vectors) -> Asked:
        """See Bounding.ask."""
        asked = _quantised(queries, self.centre, _QUERY_STEPS)
        usable = _within(asked)
        factor = np.where(usable, 2.0 * asked.scale.astype(np.float64), 1.0)
        return Asked(factor, np.where(usable, asked.square, 0.0), (usable, _inputs(asked.part(usable))))

    def bounds(self, asked: Asked) -> Distances:
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

    def _bounded(self, asked: _Quantised, count: int) -> tuple[Distances, Rows]:
        """The `count` smallest lower bounds of each query, and their rows."""
        inputs = _inputs(asked)
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
        halves, rows = smallest(every, proposed, count)
        squares = 2.0 * asked.scale[:, None] * halves.astype(np.float64) + asked.square[:, None]
        return np.nextafter(squares.astype(np.float32), np.float32(-np.inf)), rows


@dataclass(frozen=True)
class _Product:
    """A part of the library, ready for multiplication: its number of rows, and the model of `_session`."""

    count: int
    session: Any


def settled(library: Vectors, probe: Probe) -> float:
    """The share, 0 to 1, of a probe's queries that the quick look would settle: those whose last candidate is further
    away than the bounds reach. Estimated from a sample of the library's vectors, float32 (n, d)."""
    some = library[:: -(-len(library) // len(probe.queries))]
    centre = _centre(library, TILING.sample)
    asked, held = _quantised(probe.queries, centre, _QUERY_STEPS), _quantised(some, centre, _LIBRARY_STEPS)
    if not _within(held).all():
        return 0.0
    reach = 2 * (asked.norm * held.rest.mean() + asked.rest * held.kept.mean())
    return float(((probe.far - reach > probe.near) & _within(asked)).mean())


def _centre(library: Vectors, sample: int) -> Vectors:
    some = library[:: -(-len(library) // sample)]
    centre: Vectors = some.mean(axis=0, dtype=np.float64).astype(np.float32)
    return centre


def _product(library: Vectors, centre: Vectors, tiling: Tiling) -> _Product | None:
    """The product of a part of the library, float32 (n, d); None if some of its vectors are out of range."""
    count, dimension = library.shape
    blocks = [slice(start, min(start + tiling.block, count)) for start in range(0, count, tiling.block)]
    turned = np.zeros((dimension, room(count, tiling.multiple)), np.int8)

    def quantised(block: slice) -> _Quantised:
        with others_turn():  # blocks this large make NumPy release the interpreter's lock nearly all the time
            part = _quantised(library[block], centre, _LIBRARY_STEPS)
            turned[:, block] = part.whole.T
        return part

    parts = in_threads(quantised, blocks, tiling.threads)
    if not all(_within(each).all() for each in parts):
        return None
    return _Product(count, _session(turned, parts))


def _quantised(vectors: Vectors, centre: Vectors, steps: int) -> _Quantised:
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
    return _Quantised(whole, scale, least_square, _norm(squares, roundings), rest, kept)


def _norm(squares: "Distances | Floats", roundings: float) -> Floats:
    norms: Floats = np.sqrt(squares.astype(np.float64) * (1 + roundings)) * (1 + 2 * _ROUNDINGS) + _NOTHING
    return norms


def _within(vectors: _Quantised) -> Mask:
    """Which of them are short enough for the bounds and finite."""
    within: Mask = (vectors.norm <= _FARTHEST) & np.isfinite(vectors.scale)
    return within


def _inputs(asked: _Quantised) -> dict[str, Any]:
    """The inputs of the model of `_session`."""
    factors = np.stack([np.ones(len(asked.norm)), asked.norm, asked.rest], axis=1) / asked.scale[:, None]
    return {"whole": asked.whole.view(np.uint8) + np.uint8(_QUERY_STEPS), "factors": factors.astype(np.float32)}


def _session(turned: Wholes, parts: Sequence[_Quantised]) -> Any:
    """Computes (|x|²/2 - |q| |e'| - |e| |s'v'|) / s - s' (v·v') for each pair: half of a lower bound of |q - x|²,
    without |q|², divided by the query's scale s.

    turned: the library's integers, int8 (d, w), where `room` gives the width w; columns beyond the library get bounds
    larger than all others. The model takes `whole`, uint8 (m, d), the queries' integers plus _QUERY_STEPS, and
    `factors`, float32 (m, 3): 1/s, |q|/s and |e|/s.
    """
    beyond = turned.shape[1] - sum(len(each.scale) for each in parts)

    def joined(name: str, filling: float = 0) -> Floats:
        return np.pad(np.concatenate([getattr(each, name) for each in parts]), (0, beyond), constant_values=filling)

    far = float(np.finfo(np.float32).max)
    tensors = {
        "library": turned,
        "scale": -joined("scale"),
        "zero": np.array(_QUERY_STEPS, np.uint8),
        "one": np.array(1, np.float32),
        "bounds": np.stack([joined("square", far) / 2, -joined("rest"), -joined("kept")]).astype(np.float32),
    }
    nodes = (
        Node("MatMulIntegerToFloat", ("whole", "library", "one", "scale", "zero"), "products", "com.microsoft"),
        Node("MatMul", ("factors", "bounds"), "others"),
        Node("Add", ("others", "products"), "halves"),
    )
    inputs = (Variable("whole", "uint8", (None, len(turned))), Variable("factors", "float32", (None, 3)))
    output = Variable("halves", "float32", (None, turned.shape[1]))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the threads are ours
    options.log_severity_level = 3  # errors only: it warns about the machine
    options.enable_cpu_mem_arena = False  # it would keep the memory of the largest answer so far, for each product
    # On the processor only: a GPU may multiply float32 with fewer bits than the bounds allow for.
    session = onnxruntime.InferenceSession(model(nodes, inputs, output, tensors), options, ["CPUExecutionProvider"])
    session._model_bytes = None  # the library once more, to start again on another provider
    return session
