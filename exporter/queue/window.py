"""Pure: what a request asks for, and which window that is at the database's now (http.md: windows in requests)."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Final

from exporter.errors import BadWindow
from exporter.queue.render import Window

MIN_WINDOW_MS: Final = 60_000
MAX_WINDOW_MS: Final = 14 * 86_400_000
DEFAULT_WINDOW_MS: Final = 86_400_000
MAX_SLOTS: Final = 120


@dataclass(frozen=True, slots=True)
class RequestedWindow:
    """The bounds that a client asked for in epoch milliseconds, any integer; None where it named none."""

    from_ms: int | None = None
    to_ms: int | None = None


def resolve(requested: RequestedWindow, *, now: float, slots: int) -> Window:
    """The window to read at `now` (epoch seconds of the database), in `slots` slots. Raises `BadWindow`.

    Nothing ends after now; a window longer than 14 days or shorter than 60 s begins elsewhere; without bounds it is the
    last 24 h.
    """
    now_ms = floor(now * 1000)
    to_ms = now_ms if requested.to_ms is None else min(requested.to_ms, now_ms)
    from_ms = to_ms - DEFAULT_WINDOW_MS if requested.from_ms is None else requested.from_ms
    if to_ms < 0:
        raise BadWindow("to: expected milliseconds since 1970", field="to")
    if from_ms >= to_ms:
        raise BadWindow(f"from: expected a time before the end of the window, {to_ms}, got {from_ms}", field="from")
    from_ms = min(max(from_ms, to_ms - MAX_WINDOW_MS), to_ms - MIN_WINDOW_MS)
    return Window(from_ms / 1000, to_ms / 1000, (to_ms - from_ms) / 1000 / slots)
