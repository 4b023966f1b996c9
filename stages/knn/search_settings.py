"""The parameters of a neighbour search, read from their variables. Knows no vectors."""

from collections.abc import Mapping
from dataclasses import dataclass

from stages.datum.stage_parameters import integer, one_of

METRICS = ("euclidean", "cosine")
BACKENDS = ("auto", "cuml", "numpy", "faiss", "sklearn")
ALGORITHMS = ("exact", "ivfflat", "ivfpq")
LARGEST_K = 1000


@dataclass(frozen=True)
class SearchSettings:
    """The parameters of a neighbour search.

    k: neighbours per query, 1 to LARGEST_K. metric: one of METRICS. backend: one of BACKENDS, which proposes
    candidates of exact searches. algorithm: one of ALGORITHMS; all but "exact" are approximate, by codes of the index.
    """

    k: int = 3
    metric: str = "euclidean"
    backend: str = "auto"
    algorithm: str = "exact"


def read_settings(environment: Mapping[str, str]) -> SearchSettings:
    """Reads K, METRIC, BACKEND and ALGORITHM; raises StageError, naming the variable, for a bad value."""
    return SearchSettings(
        k=integer(environment, "K", 3, 1, LARGEST_K),
        metric=one_of(environment, "METRIC", METRICS),
        backend=one_of(environment, "BACKEND", BACKENDS),
        algorithm=one_of(environment, "ALGORITHM", ALGORITHMS),
    )
