"""Log lines about what clients do, which a client could otherwise write without end."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

PAUSE_SECONDS = 60.0


class Throttle:
    """Lets one event a minute pass, and counts those between."""

    __slots__ = ("_clock", "_left_out", "_until")

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._until: float | None = None
        self._left_out = 0

    def passes(self) -> int | None:
        """For an event that may be logged: how many were left out before it. None: leave this one out too."""
        now = self._clock()
        if self._until is not None and now < self._until:
            self._left_out += 1
            return None
        self._until = now + PAUSE_SECONDS
        left_out, self._left_out = self._left_out, 0
        return left_out
