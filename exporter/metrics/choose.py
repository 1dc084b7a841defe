"""Pure: which label values are exported when there are more of them than the limit."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from heapq import nsmallest

# A series keeps its place until a newcomer is a quarter larger: two of about the same size must not alternate.
INCUMBENT_FACTOR = 1.25


def choose(
    previous: AbstractSet[str], sizes: Mapping[str, float], first: AbstractSet[str], limit: int
) -> frozenset[str]:
    """The at most `limit` names of `sizes` to export: those of `first` before others, then the largest.

    `previous` is the last answer: its names count a quarter larger than they are. Ties go to them, then by name.
    """
    if len(sizes) <= limit:
        return frozenset(sizes)

    def rank(name: str) -> tuple[bool, float, bool, str]:
        incumbent = name in previous
        size = sizes[name] * INCUMBENT_FACTOR if incumbent else sizes[name]
        return (name not in first, -size, not incumbent, name)

    return frozenset(nsmallest(limit, sizes, key=rank))
