"""What Prometheus reads of a service."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """Counts and times of the requests to `/predict`, beside what the system says of the process that answers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter("serve_requests", "Requests that were answered", ["status"], registry=self.registry)
        self.images = Counter("serve_images", "Images that the network saw", registry=self.registry)
        self.seconds = Histogram(
            "serve_request_seconds", "Time from the first byte to the answer", buckets=SECONDS, registry=self.registry
        )
        self.batch = Histogram(
            "serve_batch_images", "Images in the batch of a request", buckets=SIZES, registry=self.registry
        )
        self.running = Gauge("serve_requests_running", "Requests that wait for an answer", registry=self.registry)

    def page(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)
