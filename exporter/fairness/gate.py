"""When this process may refresh: one attempt at a time, and none before the interval has passed since the last one.

A failed attempt counts like any other: asking a database in trouble more often is the wrong direction.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cadence:
    """The cycle's intervals in seconds (fairness.md). One value, so that tests can run a day in a minute.

    `claim_guard` is the least age of the payload row that any claim takes; `slack` covers the drift between this host's
    clock, which times the attempts, and the database's, which ages the row: without it one replica in two would come
    a millisecond too early and lose its cycle to nobody.
    """

    capped: float = 2.0
    idle: float = 5.0
    claim_guard: float = 2.0
    reading: float = 10.0
    refresh_limit: float = 5.0
    slack: float = 0.02

    def interval(self, *, capped: bool) -> float:
        """The present interval: shorter while somebody is capped."""
        return self.capped if capped else self.idle


class Gate:
    """The process's own guard around the refresh. Times are monotonic seconds, passed in."""

    __slots__ = ("_in_flight", "_last_attempt")

    def __init__(self) -> None:
        self._last_attempt: float | None = None
        self._in_flight = False

    def due_in(self, now: float, interval: float) -> float:
        """Seconds until the next attempt may begin."""
        return 0.0 if self._last_attempt is None else max(0.0, self._last_attempt + interval - now)

    def enter(self, now: float, interval: float) -> bool:
        """Begin an attempt; False while one is in flight or the interval has not passed."""
        if self._in_flight or self.due_in(now, interval) > 0:
            return False
        self._in_flight = True
        self._last_attempt = now
        return True

    def stamp(self, now: float) -> None:
        """Move the attempt to `now`: once the claim has answered, the row is at least this young."""
        self._last_attempt = now

    def leave(self) -> None:
        """End the attempt; its time stands."""
        self._in_flight = False
