"""Pure: the slots of a stored series as one honest line (queue-metrics.md, drawing).

A line is a list of vertices `(epoch milliseconds, value)` joined by straight segments. Time never decreases; a vertical
is two vertices at one time. Works in epoch seconds inside and rounds to milliseconds when a vertex is added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor
from typing import NamedTuple, TypeAlias

STALE_SECONDS = 900.0

Vertex: TypeAlias = tuple[int, float]


class Slot(NamedTuple):
    """One slot of one series: its first and last sample (epoch seconds, values as written) and its peak.

    `ramp` says that all its samples climb from one moment; `last_climbing` that the last one climbs. A tuple, since a
    frozen dataclass costs five times as much to make, and a window has 240,000 of them.
    """

    first: float
    last: float
    first_value: float
    last_value: float
    peak: float
    last_climbing: bool
    ramp: bool


@dataclass(frozen=True, slots=True)
class Window:
    """What is drawn: `from_at` to `to_at` in epoch seconds, in slots of `slot_seconds`."""

    from_at: float
    to_at: float
    slot_seconds: float

    @property
    def from_ms(self) -> int:
        """The left edge in epoch milliseconds."""
        return floor(self.from_at * 1000 + 0.5)

    @property
    def to_ms(self) -> int:
        """The right edge in epoch milliseconds."""
        return floor(self.to_at * 1000 + 0.5)


def render(carried: Slot | None, slots: Iterable[Slot], window: Window) -> list[Vertex]:
    """The line of one series. `carried` is the slot before the window; `slots` are those in it, in order of time."""
    pen = _Pen(window)
    if carried is not None and window.from_at - carried.last <= STALE_SECONDS:
        pen.hold(carried)
        pen.add(window.from_at, pen.value_at(window.from_at))
    for slot in slots:
        entering = pen.advance(slot.first)
        pen.add(slot.first, entering)
        if slot.ramp:
            pen.add(slot.first, slot.first_value)
        else:
            pen.add(slot.first, slot.peak)
            pen.add(slot.last, slot.peak)
        pen.add(slot.last, slot.last_value)
        pen.hold(slot)
    if pen.vertices:
        pen.add(window.to_at, pen.advance(window.to_at))
    return pen.vertices


class _Pen:
    """The line so far, and the last sample drawn: its time, its value then, whether it climbs."""

    __slots__ = ("_at", "_boundary", "_climbing", "_holding", "_value", "_window", "vertices")

    def __init__(self, window: Window) -> None:
        self.vertices: list[Vertex] = []
        self._window = window
        self._boundary = window.from_at
        self._holding = False
        self._at = 0.0
        self._value = 0.0
        self._climbing = False

    def hold(self, slot: Slot) -> None:
        """Let the slot's last sample be in force."""
        self._holding = True
        self._at, self._value, self._climbing = slot.last, slot.last_value, slot.last_climbing

    def value_at(self, time: float) -> float:
        """What the sample in force draws at `time`."""
        return self._value + (time - self._at) if self._climbing else self._value

    def advance(self, time: float) -> float:
        """Draw the sample in force up to `time`; the value there, 0 where it ran dry on the way."""
        if not self._holding:
            return 0.0
        stale = self._at + STALE_SECONDS
        if self._climbing:
            self._climb(min(time, stale))
        if time <= stale:
            return self.value_at(time)
        self.add(stale, self.value_at(stale))
        self.add(stale, 0.0)
        self._holding = False
        return 0.0

    def _climb(self, until: float) -> None:
        """A vertex at each slot boundary: on a logarithmic axis one long straight segment lies in the wrong place."""
        begin = max(self._at, self._window.from_at)
        # Boundaries are summed up, not multiplied: another form rounds some of them to another millisecond.
        while self._boundary <= begin:
            self._boundary += self._window.slot_seconds
        while self._boundary < until:
            self.add(self._boundary, self.value_at(self._boundary))
            self._boundary += self._window.slot_seconds

    def add(self, time: float, value: float) -> None:
        """Add a vertex, rounded half up to a millisecond and never below 0; a horizontal run keeps its two ends."""
        vertex = (floor(time * 1000 + 0.5), max(value, 0.0))
        vertices = self.vertices
        if vertices and vertices[-1] == vertex:
            return
        if len(vertices) > 1 and vertices[-1][1] == vertices[-2][1] == vertex[1]:
            vertices[-1] = vertex
        else:
            vertices.append(vertex)
