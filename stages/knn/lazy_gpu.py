"""A searcher that begins on the processor, and changes to the GPU once that pays: the import of cuML takes seconds, in
which a processor answers many queries. Answers do not depend on it. Knows no backend.

A process rents the processor until the products that it has computed there, with those of the search to come, would
have taken as long as the import. On a processor of the assumed rate that takes at most twice the time of the better
way, known in advance.
"""

from collections.abc import Callable
from dataclasses import dataclass

from stages.knn.backend import Rows
from stages.knn.blas_threads import cores
from stages.knn.top_k import Searcher, TopK
from stages.knn.vector_set import VectorSet

IMPORT = 4.5
"""Seconds that cuML's import takes, with CUDA's start: 4 to 5 were measured."""

RATE = 40e9
"""Products of two numbers, each with its addition, that one core computes a second. With AVX2 it was 40 · 10⁹, with
AVX-512 83 · 10⁹ (docs/benchmarks.md); a vCPU that is half a core does the half of that. So this is right within a
factor of two."""


def price() -> float:
    """The products that this machine's processor computes while cuML is imported."""
    return IMPORT * RATE * cores()


@dataclass
class ProductAccount:
    """The products of one process on the processor. price: None for that of this machine. open: whether the GPU is in
    use, so that nothing has to be paid any more."""

    price: float | None = None
    spent: float = 0.0
    open: bool = False

    def pays(self, products: float) -> bool:
        """Whether a search of so many products should use the GPU; otherwise they are booked."""
        if self.price is None:
            self.price = price()
        self.open = self.open or self.spent + products >= self.price
        if not self.open:
            self.spent += products
        return self.open


class LazyGpuSearcher:
    """Searches with `processor` until the account says that the other searcher pays, which is then opened."""

    def __init__(
        self, library: VectorSet, processor: Searcher, on_gpu: Callable[[], Searcher], account: ProductAccount
    ) -> None:
        self._library = library
        self._searcher = processor
        self._on_gpu: Callable[[], Searcher] | None = on_gpu
        self._account = account

    def search(self, queries: VectorSet, k: int, exclude: Rows | None = None) -> TopK:
        """See Searcher. Raises what opening the other searcher raises."""
        queries.must_match(self._library)
        products = float(len(queries)) * len(self._library) * self._library.dimension
        if self._on_gpu is not None and self._account.pays(products):
            self._searcher, self._on_gpu = self._on_gpu(), None
        return self._searcher.search(queries, k, exclude)
