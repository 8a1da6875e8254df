"""The relay's Prometheus metrics; labels are bounded: never a pod, trial or key."""

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class RelayMetrics:
    """Counters of one relay, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "stayer_relay_requests_total",
            "Requests to the evidence relay.",
            ("method", "role", "code"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "stayer_relay_request_duration_seconds",
            "Time from a request to the head of its answer.",
            ("method",),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self.bytes = Counter(
            "stayer_relay_bytes_total",
            "Bytes of objects passed on.",
            ("direction",),
            registry=self._registry,
        )
        self.store_errors = Counter(
            "stayer_relay_store_errors_total",
            "Requests that failed for the store's sake.",
            ("kind",),
            registry=self._registry,
        )

    media_type = CONTENT_TYPE_LATEST

    def text(self) -> bytes:
        """The exposition."""
        return generate_latest(self._registry)
