"""Which window a request means (http.md: windows in requests)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.errors import BadWindow
from exporter.queue.window import MAX_WINDOW_MS, MIN_WINDOW_MS, RequestedWindow, resolve

NOW = 1_700_000_000.1239
NOW_MS = 1_700_000_000_123
DAY_MS = 86_400_000


def bounds(from_ms: int | None, to_ms: int | None, length_ms: int = DAY_MS) -> tuple[int, int]:
    window = resolve(RequestedWindow(from_ms, to_ms, length_ms), now=NOW, slots=120)
    assert window.slot_seconds == pytest.approx((window.to_at - window.from_at) / 120)
    return window.from_ms, window.to_ms


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ((None, None), (NOW_MS - DAY_MS, NOW_MS)),
        ((NOW_MS - 100_000, None), (NOW_MS - 100_000, NOW_MS)),
        ((None, NOW_MS - DAY_MS), (NOW_MS - 2 * DAY_MS, NOW_MS - DAY_MS)),
        ((NOW_MS - 100_000, NOW_MS - 10_000), (NOW_MS - 100_000, NOW_MS - 10_000)),
        ((NOW_MS - 100_000, NOW_MS + 1), (NOW_MS - 100_000, NOW_MS)),
        ((NOW_MS - 100_000, 10**17), (NOW_MS - 100_000, NOW_MS)),
        ((NOW_MS - 10, NOW_MS), (NOW_MS - 60_000, NOW_MS)),
        ((0, NOW_MS), (NOW_MS - 14 * DAY_MS, NOW_MS)),
        ((-(10**17), NOW_MS), (NOW_MS - 14 * DAY_MS, NOW_MS)),
        ((NOW_MS - 14 * DAY_MS - 1, NOW_MS), (NOW_MS - 14 * DAY_MS, NOW_MS)),
        ((0, 1), (-59_999, 1)),
    ],
)
def test_bounds_are_brought_into_the_limits(asked: tuple[int | None, int | None], meant: tuple[int, int]) -> None:
    assert bounds(*asked) == meant


def test_a_length_counts_only_without_a_left_edge() -> None:
    assert bounds(None, None, 3_600_000) == (NOW_MS - 3_600_000, NOW_MS)
    assert bounds(NOW_MS - 100_000, None, 3_600_000) == (NOW_MS - 100_000, NOW_MS)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ((NOW_MS, NOW_MS), "from"),
        ((NOW_MS - 1, NOW_MS - 2), "from"),
        ((NOW_MS + 5, NOW_MS + 10), "from"),
        ((NOW_MS + 5, None), "from"),
        ((None, -1), "to"),
        ((-(10**17) - 1, -(10**17)), "to"),
    ],
)
def test_a_window_that_is_none_is_refused_by_the_bound_at_fault(
    asked: tuple[int | None, int | None], field: str
) -> None:
    with pytest.raises(BadWindow, match=rf"^{field}: ") as refused:
        bounds(*asked)
    assert refused.value.field == field


@given(st.none() | st.integers(), st.none() | st.integers())
def test_whatever_is_asked_is_a_window_within_the_limits_or_refused(from_ms: int | None, to_ms: int | None) -> None:
    try:
        begin, end = bounds(from_ms, to_ms)
    except BadWindow:
        return
    assert end <= NOW_MS
    assert MIN_WINDOW_MS <= end - begin <= MAX_WINDOW_MS
