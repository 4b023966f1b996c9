"""Calls of the API in numbers: how many ended in which way, how long they took, and those under way. Knows no gRPC."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0)


class CallCounts:
    """The calls of one server. Thread-safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter(
            "localpachd_calls", "Calls that ended, by method and status code.", ("method", "code"), registry=registry
        )
        self._seconds = Histogram(
            "localpachd_call_seconds",
            "Time of calls, with the time that they waited.",
            ("method",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._under_way = Gauge(
            "localpachd_calls_under_way", "Calls under way, waiting ones too.", ("method",), registry=registry
        )

    def begin(self, method: str) -> float:
        """Counts a call that begins; returns the time for `end`. The caller sees to it that there are few methods."""
        self._under_way.labels(method).inc()
        return time.perf_counter()

    def end(self, method: str, begun: float, code: str) -> None:
        """Counts a call that has ended with the status code of this name."""
        self._seconds.labels(method).observe(time.perf_counter() - begun)
        self._under_way.labels(method).dec()
        self._ended.labels(method, code).inc()
