"""What the collectors hand to the exposition: families and their samples, immutable."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class FamilyType(StrEnum):
    """The kinds of families that are exported, as both text formats name them."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Origin(StrEnum):
    """Whose value it is: the cluster's, the same on every replica (read the maximum), or one replica's own work."""

    CLUSTER = "cluster"
    REPLICA = "replica"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family as declared. The name of a counter ends in `_total`; `unit` is a base unit or empty."""

    name: str
    type: FamilyType
    unit: str
    labels: tuple[str, ...]
    help: str
    origin: Origin

    @property
    def stem(self) -> str:
        """The name as OpenMetrics declares it: a counter's without `_total`."""
        return self.name.removesuffix("_total") if self.type is FamilyType.COUNTER else self.name

    @property
    def sample_names(self) -> tuple[str, ...]:
        """Every name that a sample of the family can have."""
        if self.type is FamilyType.HISTOGRAM:
            return (f"{self.name}_bucket", f"{self.name}_count", f"{self.name}_sum")
        return (self.name,)


class Sample(NamedTuple):
    """One number. `labels` are the values in the order of the family's labels; the rest is for histograms."""

    labels: tuple[str, ...]
    value: float
    suffix: str = ""
    upper_bound: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """A family with its samples; `dropped` label sets were left out of it by the limits on cardinality."""

    family: Family
    samples: tuple[Sample, ...]
    dropped: int = 0
