"""What this replica did and how it is: counters, durations, connections, process basics.

Each object has a registry of its own: two in one process never meet. Every known label value has its series from the
first scrape on, so that a rate over it sees the first event.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence

from exporter import __version__
from exporter.errors import DatabaseError
from exporter.fairness.values import Admission, RefreshOutcome, RefreshResult
from exporter.metrics import families
from exporter.metrics.client import (
    ClientMetric,
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
)
from exporter.metrics.families import FAMILIES
from exporter.metrics.values import Family, Metric, Sample
from exporter.queue.values import QueueOutcome, SampleResult

COLLECTORS = ("fairness", "queue", "retention")
FAILURE_REASONS = (
    "unreachable",
    "starting",
    "authentication",
    "tls",
    "connection_limit",
    "no_such_database",
    "no_writable_server",
    "configuration",
    "connection_lost",
    "backoff",
    "pool_exhausted",
    "closed",
    "deadline",
    "statement_timeout",
    "lock_timeout",
    "missing_schema",
    "missing_table",
    "missing_column",
    "missing_privilege",
    "row_security",
    "read_only",
    "statement_error",
)
COLLECTOR_BUCKETS_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
HTTP_BUCKETS_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class OwnMetrics:
    """The metrics of this process. `pool_connections` gives the open connections by state when asked.

    `changes` rises with everything recorded here but HTTP requests and their admissions, so that a reader knows when to
    look again.
    """

    def __init__(
        self, pool_connections: Callable[[], Mapping[str, int]], collectors: Sequence[str] = COLLECTORS
    ) -> None:
        self._pool_connections = pool_connections
        self._registry = CollectorRegistry()
        self.changes = 0
        self._refreshes = self._counter(families.REFRESHES, *((result.value,) for result in RefreshResult))
        self._transitions = self._counter(families.TRANSITIONS, ("capped",), ("uncapped",))
        self._audit_failures = self._counter(families.AUDIT_FAILURES)
        self._payload_errors = self._counter(families.PAYLOAD_ERRORS)
        self._admissions = self._counter(families.ADMISSIONS, *((decision.value,) for decision in Admission))
        self._samples = self._counter(families.SAMPLES, *((result.value,) for result in SampleResult))
        self._unreadable_samples = self._counter(families.UNREADABLE_SAMPLES)
        self._failures = self._counter(
            families.COLLECTOR_FAILURES, *((name, reason) for name in collectors for reason in FAILURE_REASONS)
        )
        self._durations = self._histogram(families.COLLECTOR_DURATION, COLLECTOR_BUCKETS_SECONDS)
        for name in collectors:
            self._durations.labels(name)
        self._requests = self._histogram(families.HTTP_DURATION, HTTP_BUCKETS_SECONDS)
        self._connections = self._gauge(families.POOL_CONNECTIONS)
        self._reload_successful = self._gauge(families.RELOAD_SUCCESSFUL)
        self._reload_successful.set(1)
        self._reload_last_success = self._gauge(families.RELOAD_LAST_SUCCESS)
        self._web_config_successful = self._gauge(families.WEB_CONFIG_SUCCESSFUL)
        self._web_config_successful.set(1)
        self._gauge(families.BUILD_INFO).labels(__version__, platform.python_version()).set(1)
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def record_refresh(self, outcome: RefreshOutcome) -> None:
        """Count one cycle of the fairness refresh."""
        self.changes += 1
        self._refreshes.labels(outcome.result.value).inc()
        self._transitions.labels("capped").inc(len(outcome.capped))
        self._transitions.labels("uncapped").inc(len(outcome.uncapped))
        self._audit_failures.inc(outcome.audit_failures)
        self._payload_errors.inc(outcome.payload_errors)

    def record_queue(self, outcome: QueueOutcome) -> None:
        """Count one tick of the queue sampler."""
        self.changes += 1
        for result, series in outcome.samples:
            self._samples.labels(result.value).inc(series)
        self._unreadable_samples.inc(outcome.unreadable_samples)

    def observe_collector(self, name: str, seconds: float, error: DatabaseError | None = None) -> None:
        """Count one run of a collector that took `seconds` and failed with `error`, if any."""
        self.changes += 1
        self._durations.labels(name).observe(seconds)
        if error is not None:
            self._failures.labels(name, error.reason).inc()

    def observe_request(self, route: str, status: int, seconds: float) -> None:
        """Count one HTTP request. `route` is a path that we serve, or one word for all others."""
        self._requests.labels(route, f"{status // 100}xx").observe(seconds)

    def count_admissions(self, decision: Admission, pulls: int) -> None:
        """Count pulls for which the admission endpoint gave the same answer."""
        self._admissions.labels(decision.value).inc(pulls)

    def record_reload(self, *, successful: bool, now_epoch: float) -> None:
        """Say whether the configuration read now, in seconds of this host's clock, was good."""
        self.changes += 1
        self._reload_successful.set(successful)
        if successful:
            self._reload_last_success.set(now_epoch)

    def set_web_config_successful(self, successful: bool) -> None:
        """Say whether the web config file on the disk, with its certificates, is the one in force."""
        self.changes += 1
        self._web_config_successful.set(successful)

    def metrics(self) -> list[Metric]:
        """Every family as it is now."""
        for state, connections in self._pool_connections().items():
            self._connections.labels(state).set(connections)
        return [_metric(collected) for collected in self._registry.collect()]

    def _counter(self, family: Family, *label_sets: tuple[str, ...]) -> Counter:
        counter = Counter(family.name, family.help, family.labels, registry=self._registry)
        for labels in label_sets:
            counter.labels(*labels)
        return counter

    def _gauge(self, family: Family) -> Gauge:
        return Gauge(family.name, family.help, family.labels, registry=self._registry)

    def _histogram(self, family: Family, buckets_seconds: Sequence[float]) -> Histogram:
        return Histogram(family.name, family.help, family.labels, registry=self._registry, buckets=buckets_seconds)


def _metric(collected: ClientMetric) -> Metric:
    """The library's form in ours, without the creation times that it adds to counters."""
    name = f"{collected.name}_total" if collected.type == "counter" else collected.name
    family = FAMILIES[name]
    return Metric(family, tuple(_samples(collected, family)))


def _samples(collected: ClientMetric, family: Family) -> Iterable[Sample]:
    for sample in collected.samples:
        if not sample.name.endswith("_created"):
            labels = tuple(sample.labels[label] for label in family.labels)
            suffix = sample.name.removeprefix(family.name)
            yield Sample(labels, sample.value, suffix, sample.labels.get("le", ""))
