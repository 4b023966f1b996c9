"""The FAISS backend: brute force on the CPU. Knows no metric but Euclidean distance.

The largest (approximate - true) / (ε (|q|² + |x|²)), ε = 2⁻²³, measured with faiss-cpu 1.15.1, its matrix product and
four kinds of OpenBLAS kernels, over 60,000 pairs each:

    dimension                       64    512   1280   2048   8192   32768
    normal, and its positive part  2.2    2.1    2.3    2.1    2.7     4.6
    uniform in 0.5 .. 1.5          4.2    6.0    6.2    5.5    4.8     9.4
    near-constant vectors          5.9   26.0   38.8   38.7   77.5   251.1
    the bound used, d + 8           72    520   1288   2056   8200   32776

A constant of 8 would hold for the first two lines only, since the roundings of a sum of equal numbers all go one way.
So the bound is the proven one. It costs little: with vectors of efficientnet-lite0, 2.0 % of 750 crops of photographs
were not settled in the first round, against 0.7 % with a constant of 8; of one-pixel variants in families of 100, 100 %
against 99 %.
"""

import os
from pathlib import Path

from stages.knn.backend import Distances, RoundingBound, Rows, Vectors, expanded

CPUINFO = Path("/proc/cpuinfo")


def _name_processor(cpuinfo: Path = CPUINFO) -> None:
    """Tells the OpenBLAS in FAISS's wheel which kernels this processor can run, unless the variable is already set.

    That copy is older than many processors, for which it chooses SSE3 kernels, at least five times slower. It reads the
    variable when it is loaded, so this runs before the import. Results do not depend on it.
    """
    if "OPENBLAS_CORETYPE" in os.environ:
        return
    has = _flags(cpuinfo)
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= has:
        os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"
    elif {"avx2", "fma"} <= has:
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"


def _flags(cpuinfo: Path) -> set[str]:
    """The processor's instruction sets, by Linux's names on x86; none if the system does not list them."""
    if not cpuinfo.is_file():
        return set()
    line = cpuinfo.read_text(errors="replace").partition("flags")[2].partition("\n")[0]
    return set(line.partition(":")[2].split())


_name_processor()

import faiss

_PRODUCT_FROM = 24
"""The fewest queries for which a matrix product is faster than single distances, for 64 to 2048 dimensions."""


class FaissBackend:
    """Brute force over the library in place, memory-mapped or not: nothing is copied or trained."""

    name = "faiss"
    concurrent = False

    def __init__(self, library: Vectors) -> None:
        """library: float32 (n, d), C order."""
        self._library = library
        self.rounding: RoundingBound = expanded(library.shape[1])

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates."""
        # In 1.15 a threshold on n × d. By default FAISS uses the direct form for up to 100 queries, several times
        # slower than a matrix product with the right kernels.
        faiss.cvar.distance_compute_blas_threshold = _PRODUCT_FROM * queries.shape[1]
        distances, rows = faiss.knn(queries, self._library, count)
        return distances, rows
