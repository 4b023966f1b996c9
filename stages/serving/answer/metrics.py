"""The service in numbers, as Prometheus reads them. Measures nothing itself."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CommitLabels = tuple[str, str, str]

_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class ServiceMetrics:
    """The counters of one service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        name = "lookalike_serve"
        self.requests = Counter(
            f"{name}_requests",
            "Requests; 499: aborted by the client.",
            ("route", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            f"{name}_request_seconds", "Time of a request.", ("route",), buckets=_SECONDS, registry=self._registry
        )
        self.steps = Histogram(
            f"{name}_step_seconds", "Time of a step of an answer.", ("step",), buckets=_SECONDS, registry=self._registry
        )
        self.batches = Histogram(
            f"{name}_batch_size", "Pictures computed together.", ("work",), buckets=_SIZES, registry=self._registry
        )
        self.waiting = Gauge(f"{name}_waiting", "Pictures in the queue.", ("work",), registry=self._registry)
        self.pictures = Gauge(f"{name}_pictures", "Pictures that are searched.", registry=self._registry)
        self.ready = Gauge(f"{name}_ready", "1 while searches are answered.", registry=self._registry)
        self.commit = Gauge(
            f"{name}_commit_info", "The commits that answer.", ("index", "library", "model"), registry=self._registry
        )
        self.snapshots = Counter(f"{name}_snapshots", "Indexes that were taken.", registry=self._registry)
        self.labels = Gauge(f"{name}_labels", "Labels of the promoted model.", registry=self._registry)
        self.classifies = Gauge(f"{name}_classifies", "1 while a promoted model answers.", registry=self._registry)
        self.promotion = Gauge(
            f"{name}_promotion_info",
            "The commits of the promoted model.",
            ("select", "labelled", "model"),
            registry=self._registry,
        )
        self.promotions = Counter(f"{name}_promotions", "Promoted models that were taken.", registry=self._registry)
        self._commit: CommitLabels | None = None
        self._promoted: CommitLabels | None = None

    def serving(self, commits: CommitLabels | None, pictures: int) -> None:
        """Sets what is searched: the commits of index, library and model; None while nothing is."""
        self.ready.set(commits is not None)
        self.pictures.set(pictures)
        _tell(self.commit, self.snapshots, self._commit, commits)
        self._commit = commits

    def classifying(self, commits: CommitLabels | None, labels: int) -> None:
        """Sets what classifies: the commits of select, labelled and model; None while nothing does."""
        self.classifies.set(commits is not None)
        self.labels.set(labels)
        _tell(self.promotion, self.promotions, self._promoted, commits)
        self._promoted = commits

    def text(self) -> bytes:
        """All of them in Prometheus' text format."""
        return bytes(generate_latest(self._registry))


def _tell(info: Gauge, taken: Counter, before: CommitLabels | None, now: CommitLabels | None) -> None:
    """Names the commits that answer now in place of those before, and counts them."""
    if now == before:
        return
    if before is not None:
        info.remove(*before)
    if now is not None:
        info.labels(*now).set(1)
        taken.inc()
