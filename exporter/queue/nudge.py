"""Pure: a line whose times rise strictly, for clients that keep one value for each time (grafana.md: without lies)."""

from __future__ import annotations

from collections.abc import Iterable

from exporter.queue.render import Vertex


def nudged(vertices: Iterable[Vertex], from_ms: int) -> list[Vertex]:
    """The same vertices at strictly rising times.

    Going backwards, a vertex that is not earlier than its successor moves to a millisecond before it, so that the last
    one stays. What would fall below `from_ms` moves up instead. A line that already rises is unchanged.
    """
    moved = list(vertices)
    for index in range(len(moved) - 2, -1, -1):
        time, value = moved[index]
        latest = moved[index + 1][0] - 1
        if time > latest:
            moved[index] = (latest, value)
    earliest = from_ms
    for index, (time, value) in enumerate(moved):
        if time >= earliest:
            break
        moved[index] = (earliest, value)
        earliest += 1
    return moved
