"""Owns the quick look: lower bounds of all distances by a product of 8-bit integers, three times as fast as float32's.

Vectors are moved by about the library's mean, which changes no distance, and each is written as s·v + e: a scale, whole
numbers of 8 bits, and what is left. A product q·x is then s s'·(v·v') but for |q| |e'| + |e| |s'v'| at most (Cauchy and
Schwarz). ONNX Runtime multiplies the integers, with the processor's own instructions for that, and joins the bound in
the same pass. Of a thousand rows a few lie within the bound; these are compared anew, see `Certified`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime

from stages.neighbours.backend import SINGLE, Distances, Floats, Mask, Rounding, Rows, Vectors, gamma
from stages.neighbours.found import NONE
from stages.neighbours.onnxfile import Node, Variable, model
from stages.neighbours.selection import least, room
from stages.neighbours.threads import in_threads, others_turn

Wholes = np.ndarray[Any, np.dtype[np.int8]]

_LIBRARY_STEPS = 127
_QUERY_STEPS = 63
"""The largest whole numbers. Two products of such a pair fit into 16 bits, which older instructions add them up in."""

_LONGEST_DIMENSION = 100_000
"""Sums of so many products fit into 32 bits."""

_SAMPLE = 1024
"""Library vectors whose mean is taken. What is taken changes no answer."""

_BLOCK = 256
"""Library vectors quantised at once."""

_STEP = 128
"""Queries multiplied at once: their bounds stay near the core until they have been looked through."""

_FARTHEST, _FINEST = 1e9, 1e-9
"""Norms and scales within which nothing overflows or vanishes in float32. Others have no quick look."""

_ROUNDINGS = 16 * SINGLE
"""More than the roundings of a bound's few operations add up to, relative to its parts: moving vectors by a mean costs
4 units of float32's, joining the four parts 8 of each."""

_NOTHING = 1e-16
"""More than a norm can lose by squares that vanish in float32."""


@dataclass(frozen=True)
class _Quantised:
    """n vectors as scale · whole + rest. whole: int8 (n, d). The others are (n,): scale float32; least float64, a lower
    bound of the squared norm; most, rest and kept float64, upper bounds of the norms of vector, rest and scale · whole.
    All have room for the roundings of a bound made of them.
    """

    whole: Wholes
    scale: Distances
    least: Floats
    most: Floats
    rest: Floats
    kept: Floats


class Quantised:
    """A copy of a library in 8-bit integers, a quarter of its size."""

    name = "int8"
    concurrent = True

    def __init__(self, library: Vectors) -> None:
        """library: float32 (n, d), C order, finite."""
        count, dimension = library.shape
        some = library[:: -(-count // _SAMPLE)]
        self._centre = some.mean(axis=0, dtype=np.float64).astype(np.float32)
        blocks = [slice(start, min(start + _BLOCK, count)) for start in range(0, count, _BLOCK)]
        turned = np.zeros((dimension, room(count)), np.int8)

        def quantised(block: slice) -> _Quantised:
            with others_turn():
                part = _quantised(library[block], self._centre, _LIBRARY_STEPS)
                turned[:, block] = part.whole.T
            return part

        parts = in_threads(quantised, blocks)
        fit = dimension <= _LONGEST_DIMENSION and all(_within(each).all() for each in parts)
        self._session = _session(turned, parts) if fit else None
        self.rounding = Rounding(relative=0.0, absolute=0.0)  # what is proposed is itself a lower bound

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates: lower bounds instead of approximations, and nothing where there can be none."""
        distances = np.full((len(queries), count), np.inf, np.float32)
        rows = np.full((len(queries), count), NONE, np.int64)
        if self._session is None:
            return distances, rows
        for start in range(0, len(queries), _STEP):
            step = slice(start, start + _STEP)
            with others_turn():
                asked = _quantised(queries[step], self._centre, _QUERY_STEPS)
                usable = _within(asked)
                (bounds,) = self._session.run(None, _inputs(asked, usable))
            halves, proposed = least(bounds, count)
            squares = 2.0 * asked.scale[:, None] * halves.astype(np.float64) + asked.least[:, None]
            below = np.nextafter(squares.astype(np.float32), np.float32(-np.inf))
            distances[step] = np.where(usable[:, None], below, np.float32(np.inf))
            rows[step] = np.where(usable[:, None], proposed, NONE)
        return distances, rows


def _quantised(vectors: Vectors, centre: Vectors, steps: int) -> _Quantised:
    """The vectors less the centre, float32 (d,), in whole numbers from -steps to steps."""
    roundings = gamma(vectors.shape[1] + 8, SINGLE)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # see `_within`
        moved = vectors - centre
        norms = np.einsum("ij,ij->i", moved, moved).astype(np.float64)
        furthest = np.maximum(moved.max(axis=1), -moved.min(axis=1))
        scale = np.maximum(furthest / np.float32(steps), np.float32(_FINEST))
        numbers = moved * (1 / scale)[:, None]
        np.rint(numbers, out=numbers)
        whole = numbers.astype(np.int8)
        numbers *= scale[:, None]
        kept = _norm(np.einsum("ij,ij->i", numbers, numbers), roundings)
        numbers -= moved
        rest = _norm(np.einsum("ij,ij->i", numbers, numbers), roundings) + _ROUNDINGS * kept
        least = norms * (1 - roundings) * (1 - _ROUNDINGS)
    return _Quantised(whole, scale, least, _norm(norms, roundings), rest, kept)


def _norm(squares: "Distances | Floats", roundings: float) -> Floats:
    norms: Floats = np.sqrt(squares.astype(np.float64) * (1 + roundings)) * (1 + 2 * _ROUNDINGS) + _NOTHING
    return norms


def _within(vectors: _Quantised) -> Mask:
    """Which of them are neither too long for the bounds nor have anything that is not a number."""
    within: Mask = (vectors.most <= _FARTHEST) & np.isfinite(vectors.scale)
    return within


def _inputs(asked: _Quantised, usable: Mask) -> dict[str, Any]:
    """What the model takes, see `_session`; zeros for queries that are not usable."""
    with np.errstate(invalid="ignore"):
        factors = np.stack([np.ones(len(usable)), asked.most, asked.rest], axis=1) / asked.scale[:, None]
    factors[~usable] = 0
    return {"whole": asked.whole.view(np.uint8) + np.uint8(_QUERY_STEPS), "factors": factors.astype(np.float32)}


def _session(turned: Wholes, parts: Sequence[_Quantised]) -> Any:
    """Computes (|x|²/2 - |q| |e'| - |e| |s'v'|) / s - s' (v·v') for each pair: half of a lower bound of |q - x|², but
    for |q|², divided by the query's scale s.

    turned: the library's whole numbers, int8 (d, w), for a width given by `room`: beyond the library all bounds are
    beyond all others. The model takes `whole`, uint8 (m, d), the queries' whole numbers
    and _QUERY_STEPS, and `factors`, float32 (m, 3): 1/s, |q|/s and |e|/s.
    """

    beyond = turned.shape[1] - sum(len(each.scale) for each in parts)

    def joined(name: str, filling: float = 0) -> Floats:
        return np.pad(np.concatenate([getattr(each, name) for each in parts]), (0, beyond), constant_values=filling)

    tensors = {
        "library": turned,
        "scale": -joined("scale"),
        "zero": np.array(_QUERY_STEPS, np.uint8),
        "one": np.array(1, np.float32),
        "bounds": np.stack(
            [joined("least", float(np.finfo(np.float32).max)) / 2, -joined("rest"), -joined("kept")]
        ).astype(np.float32),
    }
    nodes = (
        Node("MatMulIntegerToFloat", ("whole", "library", "one", "scale", "zero"), "products", "com.microsoft"),
        Node("MatMul", ("factors", "bounds"), "rest"),
        Node("Add", ("rest", "products"), "halves"),
    )
    inputs = (Variable("whole", "uint8", (None, len(turned))), Variable("factors", "float32", (None, 3)))
    output = Variable("halves", "float32", (None, turned.shape[1]))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the threads are ours
    options.log_severity_level = 3  # errors: it warns of what it finds out about the machine
    return onnxruntime.InferenceSession(model(nodes, inputs, output, tensors), options)
