"""The quick look of a process: whether it pays for the queries at hand, and what the libraries that it looks at have in
common. Knows no product of its own."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol

from stages.knn.backend import Backend, BackendProbe, Vectors
from stages.knn.fallback_backend import line
from stages.knn.vector_set import VectorSet

_SETTLED = 0.9
"""The share of queries that the quick look must settle to pay: the others are searched twice, and if they are many, the
settled ones leave many rows in doubt, too."""

_LEAST = 0.5
"""The share of queries below which it is not used again."""


class QuickBackendFactory(Protocol):
    """Makes a quick backend for many queries of one library."""

    def open(self, queries: VectorSet, probe: Callable[[], BackendProbe]) -> Backend | None:
        """The backend; None if it does not work or would not pay for such queries. probe: see Probe."""
        ...

    def suits(self, share: float) -> bool:
        """Whether to use the backend again after it settled that share of a search's queries."""
        ...


@dataclass
class SharedCentre:
    """What quick looks of one process at several libraries share: the centre by which vectors are shifted, so that
    queries are quantised once, and the queries that the quick look was last found to pay for."""

    centre: Vectors | None = None
    pays_for: "weakref.ref[VectorSet] | None" = None


class QuickLook:
    """The quick look at one library, by the module stages.knn.quantised_copy."""

    def __init__(
        self, library: Vectors, load: Callable[[], ModuleType], shared: SharedCentre, report: Callable[[str], None]
    ) -> None:
        """library: float32 (n, d). load: imports the module. report: takes a line for the log."""
        self._library = library
        self._load = load
        self._shared = shared
        self._report = report

    def open(self, queries: VectorSet, probe: Callable[[], BackendProbe]) -> Backend | None:
        """See Quick.open. Libraries with one centre are samples of the same pictures: if it pays for the queries in
        one of them, it does in the others, and they are not tried again."""
        shared = self._shared
        try:
            module = self._load()
            centre = module.centre_of(self._library, shared.centre)
            known = shared.pays_for is not None and shared.pays_for() is queries and centre is shared.centre
            if not known and module.settled(self._library, probe(), centre) < _SETTLED:
                return None
            shared.centre, shared.pays_for = centre, weakref.ref(queries)
            made: Backend = module.QuantisedCopy(self._library, module.TILING, centre)
        except (ImportError, OSError, RuntimeError, MemoryError) as failure:
            self._report(f"ONNX Runtime does not work here ({line(failure)}): searching with NumPy alone")
            return None
        return made

    def suits(self, share: float) -> bool:
        """See Quick.suits."""
        if share < _LEAST:
            self._shared.pays_for = None
        return share >= _LEAST
