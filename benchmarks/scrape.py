"""What one scrape costs: generate_latest each time, against the page when something is new, and prepared.

Run from the project: python -m benchmarks.scrape
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from statistics import median
from time import perf_counter

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from exporter.fairness.values import FairnessMode
from exporter.metrics.collect import Chosen, Scope, collect
from exporter.metrics.exposition import Exposition
from exporter.metrics.freshness import freshness
from exporter.metrics.own import OwnMetrics
from exporter.metrics.page import MetricsPage
from exporter.queue.values import QueueMode, QueueReading, QueueSnapshot, TagReading
from exporter.snapshot import Board, Snapshot

SIZES = (1_000, 10_000)
ROUNDS = 60
FAMILIES_BY_TAG = 5
SCOPE = Scope(FairnessMode.OFF, max_tags=10_000)


class Peer(Collector):
    """The same families, built for each scrape as exporters on prometheus_client do."""

    def __init__(self, state: Snapshot) -> None:
        metrics = collect(state, freshness(state, SCOPE.fairness_mode, 0.0), SCOPE, Chosen()).metrics
        self._values = [(each.family, [(each.labels, each.value) for each in each.samples]) for each in metrics]

    def collect(self) -> list[GaugeMetricFamily]:
        found = []
        for family, samples in self._values:
            gauge = GaugeMetricFamily(family.name, family.help, labels=family.labels)
            for labels, value in samples:
                gauge.add_metric(labels, value)
            found.append(gauge)
        return found


def state_of(series: int) -> Snapshot:
    tags = tuple(
        TagReading(f"tag-{number}", 1 + number % 7, number / 3, number % 5, 2)
        for number in range(series // FAMILIES_BY_TAG)
    )
    queue = QueueSnapshot(QueueMode.OBSERVE, 1e9, 0.0, 10.0, QueueReading(1e9, "bench", tags, ()))
    return Snapshot((), None, queue, database_up=True)


def milliseconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return median(times) * 1e3


def measure(series: int, *, gzipped: bool) -> None:
    state = state_of(series)
    registry = CollectorRegistry()
    registry.register(Peer(state))
    board = Board(state)
    own = OwnMetrics(lambda: {"idle": 1})
    page = MetricsPage(board, own, SCOPE, lambda: 0.0)

    def peer() -> bytes:
        text = generate_latest(registry)
        return gzip.compress(text, 1, mtime=0) if gzipped else text

    def prepared() -> bytes:
        return page.body(Exposition.TEXT, gzipped=gzipped)

    def changed() -> bytes:
        board.current = Snapshot((), None, state.queue, database_up=True)
        return prepared()

    def recorded() -> bytes:
        own.observe_collector("queue", 0.01)
        return prepared()

    peer_ms = milliseconds(peer)
    print(f"{series} series, {'gzip' if gzipped else 'plain'}: generate_latest {peer_ms:.3f} ms")
    for name, work in {"new snapshot": changed, "new own metrics": recorded, "prepared": prepared}.items():
        took_ms = milliseconds(work)
        print(f"  {name:<16} {took_ms:8.4f} ms, {peer_ms / took_ms:10,.1f} times as fast")


if __name__ == "__main__":
    for size in SIZES:
        measure(size, gzipped=False)
        measure(size, gzipped=True)
