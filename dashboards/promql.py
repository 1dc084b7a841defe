"""How our PromQL reads a family: the one place that knows what replicas mean.

What comes from the database is the same on every replica, so a reader takes the maximum over replicas. Counters count
one replica's own work, so they add up. Replicas differ in their own condition: a reader asks for the worst or the best.
"""

from __future__ import annotations

from dataclasses import dataclass

from exporter.metrics.values import Family, FamilyType, Origin


@dataclass(frozen=True, slots=True)
class Scope:
    """Which series a query reads (matchers of every selector), and which labels every aggregation keeps."""

    matchers: tuple[str, ...]
    keep: tuple[str, ...]

    def gauge(self, family: Family, *by: str, where: str = "") -> str:
        """The cluster's value by the labels `by`. Raises `ValueError` for a family of one replica's own."""
        if family.origin is not Origin.CLUSTER:
            raise ValueError(f"{family.name} belongs to each replica: there is no one value of it")
        return f"max{self._by(*by)} ({self.select(family, where=where)})"

    def worst(self, family: Family, *by: str, where: str = "") -> str:
        """A condition of the replicas that is 1 when good: 0 as soon as one of them has it bad."""
        self._own(family, FamilyType.GAUGE)
        return f"min{self._by(*by)} ({self.select(family, where=where)})"

    def best(self, family: Family, *by: str, where: str = "") -> str:
        """A condition of the replicas that is 1 when good, or a point in time: that of the best replica."""
        self._own(family, FamilyType.GAUGE)
        return f"max{self._by(*by)} ({self.select(family, where=where)})"

    def rate(self, family: Family, *by: str, window: str, where: str = "") -> str:
        """What all replicas did per second."""
        self._own(family, FamilyType.COUNTER)
        return f"sum{self._by(*by)} (rate({self.select(family, where=where)}[{window}]))"

    def increase(self, family: Family, *by: str, window: str, where: str = "") -> str:
        """What all replicas did within `window`."""
        self._own(family, FamilyType.COUNTER)
        return f"sum{self._by(*by)} (increase({self.select(family, where=where)}[{window}]))"

    def or_zero(self, expression: str, witness: Family) -> str:
        """0 where `expression` finds nothing, but only while `witness` is there: without a reading nothing is known."""
        return f"{expression} or 0 * {self.gauge(witness)}"

    def select(self, family: Family, *, where: str = "") -> str:
        """The selector itself."""
        matchers = ", ".join((*self.matchers, *([where] if where else [])))
        return f"{family.name}{{{matchers}}}" if matchers else family.name

    def on(self, *labels: str) -> str:
        """The matching of two sides that share `labels`."""
        return f"on ({', '.join((*self.keep, *labels))})"

    def _by(self, *labels: str) -> str:
        kept = ", ".join((*self.keep, *labels))
        return f" by ({kept})" if kept else ""

    @staticmethod
    def _own(family: Family, kind: FamilyType) -> None:
        if family.origin is not Origin.REPLICA or family.type is not kind:
            raise ValueError(f"{family.name} is no {kind} of a replica's own")


PANELS = Scope(('job="$job"',), ())
"""Panels show the one cluster that the variable `job` names."""

RULES = Scope((), ("job",))
"""Rules watch every cluster; `job` tells them apart."""
