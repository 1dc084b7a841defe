"""Pauses after failures: from 1 s, doubling, with jitter, up to 30 s."""

from __future__ import annotations

from collections.abc import Callable

MAX_SECONDS = 30.0
JITTER = 0.25


def backoff_seconds(failures: int, uniform: float) -> float:
    """The pause after the `failures`-th failure in a row (1 or more). `uniform` is a random number from 0 to 1.

    Jitter only lengthens, so that the pause is never below a second, and 24 s is the last step that it fits over.
    """
    base = min(2.0 ** min(failures - 1, 10), MAX_SECONDS / (1 + JITTER))
    return base * (1 + JITTER * uniform)


class Backoff:
    """Failures in a row, and when the next attempt is due."""

    __slots__ = ("_due", "_monotonic", "_uniform", "failures")

    def __init__(self, monotonic: Callable[[], float], uniform: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._uniform = uniform
        self._due = 0.0
        self.failures = 0

    @property
    def remaining_seconds(self) -> float:
        """How long the next attempt must wait; 0 when it may go ahead."""
        return max(self._due - self._monotonic(), 0.0) if self.failures else 0.0

    def failed(self) -> None:
        """Note a failure, and when the next attempt is due."""
        self.failures += 1
        self._due = self._monotonic() + backoff_seconds(self.failures, self._uniform())

    def succeeded(self) -> None:
        """Forget the failures."""
        self.failures = 0
