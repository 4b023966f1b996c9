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
        self._methods: dict[str, MethodCounts] = {}

    def of(self, method: str) -> "MethodCounts":
        """The calls of one method. The caller sees to it that there are few names."""
        known = self._methods.get(method)
        if known is None:
            known = MethodCounts(self._ended, self._seconds.labels(method), self._under_way.labels(method), method)
            # Two threads may both make it: they are equal.
            self._methods[method] = known
        return known


class MethodCounts:
    """The calls of one method."""

    def __init__(self, ended: Counter, seconds: Histogram, under_way: Gauge, method: str) -> None:
        self._ended = ended
        self._seconds = seconds
        self._under_way = under_way
        self._method = method
        self._codes: dict[str, Counter] = {}

    def begin(self) -> float:
        """Counts a call that begins; returns the time for `end`."""
        self._under_way.inc()
        return time.perf_counter()

    def end(self, begun: float, code: str) -> None:
        """Counts a call that has ended with the status code of this name."""
        self._seconds.observe(time.perf_counter() - begun)
        self._under_way.dec()
        counter = self._codes.get(code)
        if counter is None:
            counter = self._codes[code] = self._ended.labels(self._method, code)
        counter.inc()
