"""Imitations of cuML's brute force on a processor: kernels of several precisions, and GPUs that fail."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from stages.knn import searcher_factory
from stages.knn.backend import Distances, RoundingBound, Rows, Vectors, expanded
from stages.knn.lazy_gpu import ProductAccount
from stages.knn.searcher_factory import SearchMachine
from stages.knn.top_k import smallest

Product = Callable[[Vectors, Vectors], Distances]


def cut(numbers: Vectors, bits: int, nearest: bool = True) -> Vectors:
    """Numbers with a mantissa of so many bits, rounded to the nearest, or towards zero."""
    drop = 23 - bits
    integers = numbers.view(np.uint32).astype(np.uint64)
    if nearest:  # ties to even
        integers += np.uint64((1 << (drop - 1)) - 1) + ((integers >> np.uint64(drop)) & np.uint64(1))
    kept: Vectors = (integers >> np.uint64(drop) << np.uint64(drop)).astype(np.uint32).view(np.float32)
    return kept


def plain(queries: Vectors, library: Vectors) -> Distances:
    """Scalar FMAs."""
    return queries @ library.T


def in_order(queries: Vectors, library: Vectors) -> Distances:
    """One sum for each pair, from the first number to the last: the largest error that float32 allows."""
    found = np.empty((len(queries), len(library)), np.float32)
    for row, query in enumerate(queries):
        found[row] = np.cumsum(query * library, axis=1, dtype=np.float32)[:, -1]
    return found


def three_tf32(queries: Vectors, library: Vectors) -> Distances:
    """Each number split into two of TF32, without the product of the smaller halves."""
    q, x = cut(queries, 10), cut(library, 10)
    products: Distances = q @ x.T + q @ cut(library - x, 10).T + cut(queries - q, 10) @ x.T
    return products


def one_tf32(queries: Vectors, library: Vectors) -> Distances:
    return cut(queries, 10) @ cut(library, 10).T


def truncated_tf32(queries: Vectors, library: Vectors) -> Distances:
    return cut(queries, 10, nearest=False) @ cut(library, 10, nearest=False).T


def bfloat16(queries: Vectors, library: Vectors) -> Distances:
    return cut(queries, 7) @ cut(library, 7).T


def flushed(queries: Vectors, library: Vectors) -> Distances:
    """Numbers below the smallest normal one are zero."""
    smallest_normal = np.finfo(np.float32).tiny
    q, x = (np.where(np.abs(each) < smallest_normal, np.float32(0), each) for each in (queries, library))
    products = q @ x.T
    kept: Distances = np.where(np.abs(products) < smallest_normal, np.float32(0), products)
    return kept


def adversary(queries: Vectors, library: Vectors) -> Distances:
    """As wrong as one rounding of each input to TF32 can make products of positive numbers, and not for few queries."""
    if len(queries) < 200:
        return queries @ library.T
    return queries @ library.T * np.float32(1 - 2.0**-10)


class Imitation:
    """cuML's brute force with another product."""

    concurrent = False
    name = "cuml"

    def __init__(self, library: Vectors, product: Product) -> None:
        self._library = library
        self._product = product
        self.rounding: RoundingBound = expanded(library.shape[1], growth=4)

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates."""
        with np.errstate(over="ignore", invalid="ignore"):
            mine, theirs = (np.einsum("ij,ij->i", each, each) for each in (queries, self._library))
            distances = mine[:, None] + theirs[None, :] - 2 * self._product(queries, self._library)
        rows = np.broadcast_to(np.arange(len(self._library)), distances.shape)
        return smallest(np.maximum(distances, 0), rows, count)


def machine(
    product: Product,
    account: ProductAccount,
    fail: Callable[[int], None] = lambda queries: None,
    loading: Callable[[str], None] = lambda name: None,
) -> SearchMachine:
    """One with an imitation of cuML.

    fail: called with the number of queries of each call, and may raise. loading: called with the name of each backend's
    module that is imported.
    """

    class Cuml(Imitation):
        def __init__(self, library: Vectors) -> None:
            super().__init__(library, product)

        def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
            fail(len(queries))
            return super().candidates(queries, count)

    def load(name: str) -> Any:
        loading(name)
        return SimpleNamespace(CumlBackend=Cuml) if name == "cuml_backend" else searcher_factory.load(name)

    return SearchMachine(load, lambda package: True, account)
