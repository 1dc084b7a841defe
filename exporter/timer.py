"""A timer that never piles up: missed ticks are skipped. Times are monotonic seconds, passed in."""

from __future__ import annotations

from math import floor


class Timer:
    """Ticks at the start and then at whole multiples of the interval, whatever a tick takes."""

    __slots__ = ("_due", "_interval")

    def __init__(self, interval_seconds: float) -> None:
        self._interval = interval_seconds
        self._due: float | None = None

    def due_in(self, now: float) -> float:
        """Seconds until the next tick."""
        return 0.0 if self._due is None else max(0.0, self._due - now)

    def hasten(self, due: float) -> None:
        """Let the next tick come at `due` where that is earlier; those after it keep their distance from it."""
        self._due = due if self._due is None else min(self._due, due)

    def begin(self, now: float) -> None:
        """Begin a tick; the next one is the first multiple of the interval that lies ahead."""
        if self._due is None:
            self._due = now
        passed = floor((now - self._due) / self._interval) + 1
        self._due += max(0, passed) * self._interval
