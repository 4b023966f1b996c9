"""The metrics of one server: its registry, its calls, its state, and the port that shows them."""

import ssl

from prometheus_client import CollectorRegistry, generate_latest

from localpachd.metrics.call_counts import CallCounts
from localpachd.metrics.metrics_endpoint import MetricsEndpoint
from localpachd.metrics.state_collector import StateCollector, StateSources


class ServerMetrics:
    """Counts `calls` from the beginning, and shows all metrics at `address` once it is `opened` and `started`."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.calls = CallCounts(self._registry)
        self._endpoint: MetricsEndpoint | None = None

    @property
    def address(self) -> str:
        """The URL of the metrics, "" while there is none."""
        return self._endpoint.address if self._endpoint is not None else ""

    def open(self, host: str, port: int, token: str, context: ssl.SSLContext | None) -> None:
        """Listens, with port 0 on any free one. Raises Unavailable if it is taken."""
        self._endpoint = MetricsEndpoint(host, port, self._text, token, context)

    def start(self, sources: StateSources) -> None:
        """Starts to answer with the state of these parts of the server."""
        StateCollector(sources, self._registry)
        if self._endpoint is not None:
            self._endpoint.start()

    def stop(self) -> None:
        """Closes the port."""
        if self._endpoint is not None:
            self._endpoint.stop()

    def _text(self) -> bytes:
        return bytes(generate_latest(self._registry))
