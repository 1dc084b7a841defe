"""Times that rise strictly: what moves, how far, and what never does."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from exporter.queue.nudge import nudged
from exporter.queue.render import Vertex

FROM = 1_000
TO = 61_000
lines = st.lists(st.tuples(st.integers(FROM, FROM + 40) | st.integers(FROM, TO), st.floats(0, 1e6)), max_size=60).map(
    lambda vertices: sorted(vertices, key=lambda vertex: vertex[0])
)


def with_end(line: list[Vertex]) -> list[Vertex]:
    """Every drawn line ends at the right edge of its window."""
    return [*line, (TO, 1.0)]


@given(lines)
def test_times_rise_strictly_values_and_the_last_vertex_stay(line: list[Vertex]) -> None:
    moved = nudged(with_end(line), FROM)
    times = [time for time, _ in moved]
    assert all(left < right for left, right in itertools.pairwise(times))
    assert [value for _, value in moved] == [value for _, value in with_end(line)]
    assert moved[-1] == (TO, 1.0)
    assert times[0] >= FROM


@given(lines)
def test_no_vertex_moves_further_than_its_run_is_long(line: list[Vertex]) -> None:
    before = with_end(line)
    after = nudged(before, FROM)
    for index, ((old, _), (new, _)) in enumerate(zip(before, after, strict=True)):
        if new < old:
            run = index
            while run + 1 < len(before) and after[run + 1][0] == after[run][0] + 1:
                run += 1
            assert old - new <= run - index


@given(st.sets(st.integers(FROM, TO), max_size=50))
def test_a_line_that_rises_is_untouched(times: set[int]) -> None:
    line = [(time, 1.0) for time in sorted(times)]
    assert nudged(line, FROM) == line


def test_a_vertical_keeps_both_ends_a_millisecond_apart() -> None:
    drop = [(2000, 9.0), (5000, 9.0), (5000, 0.0), (61_000, 0.0)]
    assert nudged(drop, FROM) == [(2000, 9.0), (4999, 9.0), (5000, 0.0), (61_000, 0.0)]


def test_a_run_at_the_left_edge_moves_up() -> None:
    assert nudged([(1000, 0.0), (1000, 9.0), (1000, 3.0), (61_000, 3.0)], FROM) == [
        (1000, 0.0),
        (1001, 9.0),
        (1002, 3.0),
        (61_000, 3.0),
    ]


def test_a_run_at_the_left_edge_pushes_what_stands_in_its_way() -> None:
    line = [(1000, 0.0), (1000, 1.0), (1000, 2.0), (1001, 3.0), (61_000, 3.0)]
    assert [time for time, _ in nudged(line, FROM)] == [1000, 1001, 1002, 1003, 61_000]


def test_nothing_and_one_vertex_stay() -> None:
    assert nudged([], FROM) == []
    assert nudged([(1000, 1.0)], FROM) == [(1000, 1.0)]
