"""Stand-in until the admission rule is merged: only what a dispatcher asks."""

from __future__ import annotations

STALE_DECISION_SECONDS = 60.0


def admits(ppm: int, draw: int) -> bool:
    """Whether one pull may take a capped workspace's job; `draw` is uniform in 0..9999."""
    return draw < ppm


def decision_is_stale(age_seconds: float | None) -> bool:
    """Whether a decision is too old to hold anybody back: a stopped exporter must not leave a cap for ever."""
    return age_seconds is None or age_seconds > STALE_DECISION_SECONDS
