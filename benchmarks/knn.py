"""Owns the measurement of nearest-neighbour search on a GPU: the article's table (k = 3, 10,000 queries, 90,000 vectors
of 2,048 numbers) beside a plain matrix product of the same run, and the errors of cuML's distances."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Arrays, Vectors
from benchmarks.report import Line, Result, Row, timed
from benchmarks.searchers import as_the_article
from stages.knn.backend import Backend

ARTICLE = {
    "cuML": (0.791, "NVIDIA P4, the article's figure"),
    "scikit-learn": (454.0, "8 vCPU, the article's figure"),
}
"""Seconds of the full-size search."""


@dataclass(frozen=True, slots=True)
class _Backend:
    """A backend of lookalike: its name, its place in stages.knn, and the package that it needs."""

    name: str
    module: str
    kind: str
    needs: str


_BACKENDS = (
    _Backend("cuML", "cuml_backend", "CumlBackend", "cuml"),
    _Backend("NumPy", "numpy_backend", "NumpyBackend", "numpy"),
    _Backend("FAISS", "faiss_backend", "FaissBackend", "faiss"),
)

_CHECKED = 100  # queries whose neighbours are compared with those in float64


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a search."""

    queries: int
    library: int
    dimension: int
    k: int = 3

    @property
    def operations(self) -> float:
        """The multiplications and additions of the matrix product in every brute-force search."""
        return 2.0 * self.queries * self.library * self.dimension


FULL = Size(10_000, 90_000, 2_048)

Search = Callable[[], NDArray[np.int64]]


def measure(size: Size, arrays: list[Arrays], rounds: int) -> Result:
    """Every searcher on this machine, each as the best of several rounds after a warm-up."""
    random = np.random.default_rng(0)
    library = random.standard_normal((size.library, size.dimension), np.float32)
    queries = random.standard_normal((size.queries, size.dimension), np.float32)
    true = _true(queries[:_CHECKED], library, size.k)
    if not _there("cuml"):
        print("cuML is not installed: only the searches that it would be compared with are measured", file=sys.stderr)
    rows, lines = [], []
    bound = None
    for each in arrays:
        left, right = each.put(queries), each.put(library)
        seconds = _best(partial(each.product, left, right), rounds)
        bound = min(seconds, bound or seconds)
        rows.append(Row("product", f"matrix product ({each.name})", seconds, size.operations / seconds))
        lines.append(Line(rows[-1].name, f"{seconds:.3f} s", f"{size.operations / seconds / 1e12:.1f} TFLOP/s"))
    for name, search in _ways(size, queries, library, arrays):
        found = search()
        seconds = _best(search, rounds if name != "scikit-learn" else 1)
        right_ones = float((found[:_CHECKED] == true).mean())
        rows += [Row("knn", name, seconds, size.queries / seconds), Row("agreement", name, rate=right_ones)]
        lines.append(_line(name, seconds, bound, right_ones, size))
    return Result(tuple(rows), tuple(lines))


def measure_certificate(size: Size) -> Result:
    """The errors of the backends' distances, in units of ε (|q|² + |x|²), for several kinds of vectors; and the share
    of vectors whose distance from themselves is not 0."""
    rows, lines = [], []
    for name, backend in _backends():
        for family, vectors in _families(size):
            proposer = backend(vectors)
            some = vectors[: min(200, len(vectors))]
            approximate, found = proposer.candidates(some, min(32, len(vectors)))
            double = vectors.astype(np.float64)
            difference = double[: len(some), None, :] - double[found]
            norms = (double**2).sum(axis=1)
            unit = 2.0**-24 * (norms[: len(some), None] + norms[found])
            excess = (approximate - (difference**2).sum(axis=2)) / unit
            itself = found == np.arange(len(some))[:, None]
            share = float((approximate[itself] != 0).mean()) if itself.any() else 0.0
            most, promised = float(excess.max()), proposer.rounding.relative / 2.0**-24
            rows += [Row(f"excess {family}", name, rate=most), Row(f"self {family}", name, rate=share)]
            said = f"{most:.2f} ε (|q|² + |x|²), {share:.0%} of self-distances not 0"
            met = "yes" if most <= promised else "no"
            lines.append(Line(f"{name}, {family}: above the truth by", said, "", "", f"at most {promised:.0f} ε", met))
    return Result(tuple(rows), tuple(lines))


def _best(work: Callable[[], object], rounds: int) -> float:
    work() if rounds > 1 else None
    return min(timed(work) for _ in range(rounds))


def _line(name: str, seconds: float, bound: float | None, agreement: float, size: Size) -> Line:
    article, where = ARTICLE.get(name.partition(" (")[0], (None, ""))
    goal = f"{article:g} s ({where})" if article and size == FULL else ""
    met = ("yes" if article is not None and seconds <= article else "no") if goal else ""
    return Line(
        f"{name}: {agreement:.1%} of the neighbours as in float64",
        f"{seconds:.3f} s",
        f"{bound:.3f} s" if bound else "",
        f"{seconds / bound:.2f}" if bound else "",
        goal,
        met,
    )


def _ways(size: Size, queries: Vectors, library: Vectors, arrays: list[Arrays]) -> Iterator[tuple[str, Search]]:
    if _there("cuml") and importlib.import_module("cupy").is_available():
        yield from _cuml(size, queries, library)
    for each in arrays:
        left, right = each.put(queries), each.put(library)
        yield (
            f"{each.name} brute force (a comparison, not cuML; on the device)",
            partial(each.nearest, left, right, size.k),
        )
    for name, backend in _backends():
        yield f"lookalike, exact, on {name} (from host memory)", _house(backend, queries, library, size.k)
    if _there("sklearn"):
        yield "scikit-learn", lambda: as_the_article("sklearn", library, queries, size.k, n_jobs=-1)[1]


def _cuml(size: Size, queries: Vectors, library: Vectors) -> Iterator[tuple[str, Search]]:
    made = importlib.import_module("cuml.neighbors").NearestNeighbors
    cupy = importlib.import_module("cupy")
    fitted = made(algorithm="brute", output_type="cupy").fit(cupy.asarray(library))
    there = cupy.asarray(queries)
    yield "cuML (kneighbors, on the device)", lambda: fitted.kneighbors(there, size.k)[1].get()
    yield (
        "cuML (fit and kneighbors, from host memory)",
        lambda: as_the_article("cuml", library, queries, size.k, algorithm="brute", output_type="numpy")[1],
    )


def _house(backend: Callable[[Vectors], Backend], queries: Vectors, library: Vectors, k: int) -> Search:
    exact = importlib.import_module("stages.knn.exact_searcher").ExactSearcher
    points = importlib.import_module("stages.knn.vector_set").VectorSet
    asked, held = points(queries), points(library)
    return lambda: exact(held, backend(held.prepared)).search(asked, k).rows


def _backends() -> list[tuple[str, Callable[[Vectors], Backend]]]:
    """The backends of lookalike that are installed."""
    if not (_there("python_pachyderm") and _there("stages")):
        print("python-pachyderm is not installed: lookalike's own search is not measured", file=sys.stderr)
        return []
    usable = [each for each in _BACKENDS if _there(each.needs)]
    if not importlib.import_module("stages.knn.searcher_factory").gpu_visible(os.environ):
        usable = [each for each in usable if each.needs != "cuml"]
    return [(each.name, getattr(importlib.import_module(f"stages.knn.{each.module}"), each.kind)) for each in usable]


def _families(size: Size) -> Iterator[tuple[str, Vectors]]:
    random = np.random.default_rng(1)
    count = min(size.library, 4_000)
    plain = random.standard_normal((count, size.dimension), np.float32)
    yield "random", plain
    yield "families of near-duplicates", plain[np.arange(count) // 20] + plain * np.float32(1e-4)
    yield "far from 0", plain + np.float32(30)


def _true(queries: Vectors, library: Vectors, k: int) -> NDArray[np.int64]:
    """The k nearest in float64, by differences, among the few that the expansion proposes."""
    double = library.astype(np.float64)
    asked = queries.astype(np.float64)
    squares = (double**2).sum(axis=1) - 2 * asked @ double.T
    proposed = np.sort(np.argsort(squares, axis=1)[:, : k + 30], axis=1)
    exact = ((asked[:, None, :] - double[proposed]) ** 2).sum(axis=2)
    return np.take_along_axis(proposed, np.argsort(exact, axis=1, kind="stable")[:, :k], axis=1)


def _there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
