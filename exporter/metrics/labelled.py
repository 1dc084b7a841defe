"""Families built from numbers by one label, within a limit."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from exporter.metrics.values import Family, Metric, Sample


def single(family: Family, value: float) -> Metric:
    """A family of one number without labels."""
    return Metric(family, (Sample((), value),))


def labelled(family: Family, values: Iterable[tuple[str, float]]) -> Metric:
    """A family of one number for each value of its label."""
    return Metric(family, tuple(Sample((label,), value) for label, value in values))


def chosen_of(
    family: Family, values: Iterable[tuple[str, float]], chosen: AbstractSet[str], dropped: int = 0
) -> Metric:
    """A family of one number for each chosen value of its label; what is left out counts as dropped."""
    samples = []
    for label, value in values:
        if label in chosen:
            samples.append(Sample((label,), value))
        else:
            dropped += 1
    return Metric(family, tuple(samples), dropped)
