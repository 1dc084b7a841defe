"""A stored series as a small line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exporter.queue.history import Drawn, Kind, Line
from exporter.queue.render import Window
from exporter.queue.vertices import Vertices
from exporter.web.status.lines import HEIGHT, WIDTH, sparkline, sparklines

WINDOW = Window(1_000.0, 4_600.0, 60.0)


def at(minute: float) -> int:
    return round((1_000 + 60 * minute) * 1000)


def test_the_line_fills_its_frame_from_the_left_edge_to_the_right_and_its_peak_touches_the_top() -> None:
    line = sparkline([(at(0), 0.0), (at(30), 8.0), (at(60), 4.0)], WINDOW)
    assert list(line.points) == [(0.0, 24.0), (60.0, 0.0), (120.0, 12.0)]
    assert (line.peak, line.peak_at, line.last) == (8.0, 2_800.0, 4.0)


def test_the_first_of_equal_peaks_is_named() -> None:
    assert sparkline([(at(0), 1.0), (at(10), 5.0), (at(20), 5.0), (at(30), 1.0)], WINDOW).peak_at == 1_600


def test_a_series_of_noughts_lies_at_the_bottom() -> None:
    line = sparkline([(at(0), 0.0), (at(60), 0.0)], WINDOW)
    assert {y for _, y in line.points} == {float(HEIGHT)}
    assert line.peak == 0.0


def test_a_run_of_one_value_keeps_its_two_ends() -> None:
    line = sparkline([(at(minute), 3.0) for minute in range(61)], WINDOW)
    assert line.points == ((0.0, 0.0), (WIDTH, 0.0))


def test_a_vertical_stays_one() -> None:
    line = sparkline([(at(0), 1.0), (at(30), 1.0), (at(30), 4.0), (at(60), 4.0)], WINDOW)
    assert line.points == ((0.0, 18.0), (60.0, 18.0), (60.0, 0.0), (120.0, 0.0))


def test_no_vertices_is_no_error() -> None:
    line = sparkline([], WINDOW)
    assert (line.points, line.peak, line.last) == ((), 0.0, 0.0)


@given(st.lists(st.tuples(st.integers(0, 10_000_000), st.floats(0, 1e300)), max_size=500))
def test_whatever_is_stored_the_line_stays_within_its_frame_and_bounded(vertices: list[tuple[int, float]]) -> None:
    line = sparkline(sorted(vertices), WINDOW)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in line.points)
    assert all(earlier[0] <= later[0] for earlier, later in zip(line.points, line.points[1:], strict=False))
    assert all(earlier != later for earlier, later in zip(line.points, line.points[1:], strict=False))


def test_of_a_drawn_window_the_jobs_waiting_are_taken() -> None:
    lines = (Line(Kind.COUNT, "a", Vertices([(at(0), 2.0)])), Line(Kind.DELAY, "b", Vertices([(at(0), 2.0)])))
    assert sparklines(Drawn(WINDOW, lines)).keys() == {"a"}
