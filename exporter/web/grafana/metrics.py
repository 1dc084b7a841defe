"""The metrics that the JSON datasource offers, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from exporter.queue.samples import Kind


class Form(Enum):
    """How a metric is answered."""

    LINES = auto()
    GRID = auto()
    QUEUE_CURRENT = auto()
    FAIRNESS_SHARES = auto()
    FAIRNESS_EVENTS = auto()


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name in requests, its name for people, and for stored series their kind."""

    name: str
    label: str
    form: Form
    kind: Kind | None = None

    @property
    def unit(self) -> str | None:
        """Grafana's id of the unit of the values."""
        return "s" if self.kind is Kind.DELAY else None


METRICS: Final = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("queue_count", "Queue: jobs waiting by tag", Form.LINES, Kind.COUNT),
            Metric("queue_delay", "Queue: delay by tag, in seconds", Form.LINES, Kind.DELAY),
            Metric("queue_count_grid", "Queue: jobs waiting by tag, means to add up", Form.GRID, Kind.COUNT),
            Metric("queue_delay_grid", "Queue: delay by tag, means to average", Form.GRID, Kind.DELAY),
            Metric("queue_current", "Queue: table of now", Form.QUEUE_CURRENT),
            Metric("fairness_shares", "Fairness: table of now", Form.FAIRNESS_SHARES),
            Metric("fairness_events", "Fairness: caps and uncaps, as annotations", Form.FAIRNESS_EVENTS),
        )
    }
)
