"""What Prometheus is told; labels are routes, statuses and outcomes, never anything a person has written."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Meters:
    """The meters of one app in one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        here = self.registry
        self.requests = Counter(
            "vrbot_requests_total", "Requests answered.", ("method", "route", "status"), registry=here
        )
        self.seconds = Histogram("vrbot_request_seconds", "Time to answer.", ("route",), buckets=SECONDS, registry=here)
        self.under_way = Gauge("vrbot_requests_under_way", "Requests being answered.", registry=here)
        self.drafts = Counter("vrbot_drafts_total", "Drafts asked of the model.", ("outcome",), registry=here)
        self.waiting = Gauge("vrbot_drafts_waiting", "Drafts waited for.", registry=here)
        self.refused = Counter(
            "vrbot_drafts_refused_total", "Drafts refused because the queue was full.", registry=here
        )
        self.batch = Histogram(
            "vrbot_draft_batch_size", "Drafts asked for together.", buckets=(1, 2, 4, 8, 16, 32), registry=here
        )
        self.ready = Gauge("vrbot_ready", "1 once the model has answered a first turn.", registry=here)

    def page(self) -> bytes:
        """All of them, as Prometheus reads it."""
        return generate_latest(self.registry)
