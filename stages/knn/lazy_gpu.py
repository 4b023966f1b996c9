"""A searcher that begins on the processor, and changes to the GPU once that pays: the import of cuML takes seconds, in
which a processor answers many queries, and a library has to be copied and examined. Answers do not depend on it. Knows
no backend.

A process rents the processor until the products that it has computed there, with those of the search to come, would
have taken as long as the import; and then each library until its own products would have taken as long as its copy.
That takes at most twice the time of the better way, known in advance.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from stages.knn.backend import Rows
from stages.knn.bound_deviation import examined_rows
from stages.knn.top_k import Searcher, TopK
from stages.knn.vector_set import VectorSet

IMPORT = 4.5
"""Seconds that cuML's import takes, with CUDA's start: 4 to 5 were measured."""

_COPIED = 3e9
"""Bytes of a library that reach a GPU a second, out of memory that is not locked. An assumption: PCIe's data sheets say
up to 20 times as much, and drivers copy such memory twice."""

_OPENING, _EXAMINED = 0.1, 15e-9
"""Seconds that the examination of a library takes at least, and for each number that it compares (see
stages.knn.bound_deviation): on a core of an Intel Xeon 0.25 s for 5,000 × 1,280, 0.56 for 30,000 × 1,280, 1.1 for
60,000 × 2,048."""

_PRODUCT = 512, 1024, 4096
"""The sides of the product that the processor is measured with: queries, numbers, rows."""


@cache
def rate() -> float:
    """The products of two numbers, each with its addition, that this process's cores compute a second together."""
    queries, numbers, rows = _PRODUCT
    one, other = np.ones((queries, numbers), np.float32), np.ones((rows, numbers), np.float32)
    best = np.inf
    for _ in range(3):  # the first starts the threads
        began = time.perf_counter()
        one @ other.T
        best = min(best, time.perf_counter() - began)
    return queries * numbers * rows / best


def import_price() -> float:
    """The products that this machine's processor computes while cuML is imported; 0 if it is."""
    return 0.0 if "cuml" in sys.modules else IMPORT * rate()


@dataclass
class ProductAccount:
    """The products of one process on the processor. price: of cuML's import, None for that on this machine. speed:
    products a second that libraries are priced with, None for those of this machine. open: whether cuML is in use, so
    that its import has been paid."""

    price: float | None = None
    speed: float | None = None
    spent: float = 0.0
    open: bool = False

    def pays(self, products: float) -> bool:
        """Whether a search of so many products is worth the import; otherwise they are booked."""
        if self.price is None:
            self.price = import_price()
        self.open = self.open or self.spent + products >= self.price
        if not self.open:
            self.spent += products
        return self.open

    def opening_price(self, library: VectorSet) -> float:
        """The products that the processor computes while a library is opened on the GPU."""
        compared = examined_rows(len(library)) * library.dimension
        seconds = _OPENING + library.prepared.nbytes / _COPIED + _EXAMINED * compared
        return seconds * (rate() if self.speed is None else self.speed)


class LazyGpuSearcher:
    """Searches with `processor` until the account says that the other searcher pays, which is then opened."""

    def __init__(
        self, library: VectorSet, processor: Searcher, on_gpu: Callable[[], Searcher], account: ProductAccount
    ) -> None:
        self._library = library
        self._searcher = processor
        self._on_gpu: Callable[[], Searcher] | None = on_gpu
        self._account = account
        self._spent = 0.0  # since the import was paid

    def search(self, queries: VectorSet, k: int, exclude: Rows | None = None) -> TopK:
        """See Searcher. Raises what opening the other searcher raises."""
        queries.must_match(self._library)
        products = float(len(queries)) * len(self._library) * self._library.dimension
        if self._on_gpu is not None and self._pays(products):
            self._searcher, self._on_gpu = self._on_gpu(), None
        return self._searcher.search(queries, k, exclude)

    def _pays(self, products: float) -> bool:
        if not self._account.open:  # what pays for the import pays for the library, which costs far less
            return self._account.pays(products)
        self._spent += products
        return self._spent >= self._account.opening_price(self._library)
