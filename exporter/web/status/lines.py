"""Pure: a stored series as a small line, drawn to half a unit of its frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from exporter.queue.history import Drawn, Kind
from exporter.queue.render import Vertex, Window
from exporter.web.status.values import Sparkline

WIDTH = 120
HEIGHT = 24
STEPS_A_UNIT = 2


def sparklines(drawn: Drawn) -> Mapping[str, Sparkline]:
    """The lines of waiting jobs by tag."""
    return {line.tag: sparkline(line.vertices, drawn.window) for line in drawn.lines if line.kind is Kind.COUNT}


def sparkline(vertices: Iterable[Vertex], window: Window) -> Sparkline:
    """A line over `window`, its highest value at the top; flat at the bottom when it has none above 0."""
    known = list(vertices)
    peak_ms, peak = max(known, key=lambda vertex: vertex[1], default=(round(window.from_at * 1000), 0.0))
    from_ms, length_ms = window.from_at * 1000, max(1.0, (window.to_at - window.from_at) * 1000)
    points: list[tuple[float, float]] = []
    for at_ms, value in known:
        x = min(max((at_ms - from_ms) / length_ms, 0.0), 1.0) * WIDTH
        y = HEIGHT - value / peak * HEIGHT if peak else float(HEIGHT)
        point = (_rounded(x), _rounded(y))
        if points and point == points[-1]:
            continue
        if len(points) > 1 and points[-2][1] == points[-1][1] == point[1]:
            points[-1] = point
        else:
            points.append(point)
    return Sparkline(tuple(points), peak, peak_ms / 1000, known[-1][1] if known else 0.0)


def _rounded(coordinate: float) -> float:
    return round(coordinate * STEPS_A_UNIT) / STEPS_A_UNIT
