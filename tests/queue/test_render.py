"""Slots become one honest line: the published cases, and what holds for every series."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.queue.render import STALE_SECONDS, Slot, Vertex, Window, render
from tests.sources import CASES

PUBLISHED: list[dict[str, Any]] = json.loads((CASES / "render.json").read_text())
FROM = 1_700_000_000.0


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: str(case["name"]))
def test_the_published_lines(case: dict[str, Any]) -> None:
    carried = None if case["carried"] is None else Slot(**case["carried"])
    window = Window(case["from"], case["to"], case["slot_secs"])
    drawn = render(carried, [Slot(**slot) for slot in case["slots"]], window)
    assert [time for time, _ in drawn] == [time for time, _ in case["vertices"]]
    assert [value for _, value in drawn] == pytest.approx([value for _, value in case["vertices"]], abs=1e-9)


def window(seconds: float = 12_000.0, slots: int = 120) -> Window:
    return Window(FROM, FROM + seconds, seconds / slots)


@st.composite
def single_samples(draw: st.DrawFn) -> tuple[list[Slot], list[tuple[float, float, bool]]]:
    """One sample a slot at most, as slots and as (time, value when written, climbing)."""
    slots, samples = [], []
    for number in sorted(draw(st.sets(st.integers(0, 119), max_size=30))):
        at = FROM + number * 100 + draw(st.integers(0, 99_000)) / 1000
        value = float(draw(st.integers(0, 5000)))
        climbing = draw(st.booleans())
        slots.append(Slot(at, at, value, value, value, climbing, climbing))
        samples.append((at, value, climbing))
    return slots, samples


@st.composite
def merged_slots(draw: st.DrawFn) -> list[Slot]:
    slots = []
    for number in sorted(draw(st.sets(st.integers(0, 119), max_size=60))):
        begin = FROM + number * 100
        first = begin + draw(st.integers(0, 50_000)) / 1000
        last = first + draw(st.integers(0, 49_000)) / 1000
        values = [float(draw(st.integers(-10, 5000))) for _ in range(3)]
        ramp = draw(st.booleans())
        climbing = ramp or draw(st.booleans())
        slots.append(Slot(first, last, values[0], values[1], max(values), climbing, ramp))
    return slots


def straight(samples: list[tuple[float, float, bool]], time: float) -> float:
    """The value at `time` straight from the samples: the latest one's, while it is not stale."""
    before = [sample for sample in samples if sample[0] <= time]
    if not before or time > before[-1][0] + STALE_SECONDS:
        return 0.0
    at, value, climbing = before[-1]
    return value + (time - at if climbing else 0.0)


def on_line(line: list[Vertex], at_ms: float) -> float:
    for (left, low), (right, high) in itertools.pairwise(line):
        if left <= at_ms <= right and left < right:
            return low + (high - low) * (at_ms - left) / (right - left)
    raise AssertionError("outside the line")


@given(single_samples(), st.floats(0, 1))
def test_the_line_is_what_the_samples_say_at_any_time(
    scene: tuple[list[Slot], list[tuple[float, float, bool]]], part: float
) -> None:
    slots, samples = scene
    line = render(None, slots, window())
    if not samples:
        assert line == []
        return
    time = samples[0][0] + part * (FROM + 12_000 - samples[0][0])
    edges = [edge for at, _, _ in samples for edge in (at, at + STALE_SECONDS)]
    if any(abs(time - edge) < 0.01 for edge in edges) or time > FROM + 11_999.9:
        return
    assert on_line(line, time * 1000) == pytest.approx(straight(samples, time), abs=0.01)


@given(merged_slots(), merged_slots().map(lambda slots: slots[0] if slots else None))
def test_time_never_decreases_and_no_value_is_below_zero(slots: list[Slot], carried: Slot | None) -> None:
    if carried is not None:
        moved = carried.first - carried.last
        carried = Slot(FROM - 100 + moved, FROM - 100, 1.0, carried.last_value, 5.0, carried.last_climbing, False)
    line = render(carried, slots, window())
    times = [time for time, _ in line]
    assert times == sorted(times)
    assert all(value >= 0 and math.isfinite(value) for _, value in line)
    assert all(FROM * 1000 <= time <= (FROM + 12_000) * 1000 for time in times)
    assert len(line) <= 7 * 120 + 4
    assert all(left != right for left, right in itertools.pairwise(line))


@given(merged_slots())
def test_every_peak_is_drawn_at_its_height(slots: list[Slot]) -> None:
    line = render(None, slots, window())
    for slot in slots:
        inside = [value for time, value in line if slot.first * 1000 - 1 <= time <= slot.last * 1000 + 1]
        highest = max(slot.first_value, slot.last_value) if slot.ramp else slot.peak
        assert max(inside, default=0.0) >= max(0.0, highest) - 1e-9 or _is_inside_a_run(line, slot, highest)


def _is_inside_a_run(line: list[Vertex], slot: Slot, height: float) -> bool:
    """A horizontal run keeps its two ends only: the slot's own vertices may have been swallowed by it."""
    return abs(on_line(line, slot.first * 1000) - height) < 1e-6


def test_a_carried_value_begins_at_the_left_edge_while_it_is_in_force() -> None:
    carried = Slot(FROM - 900, FROM - 900, 7.0, 7.0, 7.0, False, False)
    assert render(carried, [], window())[0] == (FROM * 1000, 7.0)
    stale = Slot(FROM - 900.1, FROM - 900.1, 7.0, 7.0, 7.0, False, False)
    assert render(stale, [], window()) == []


def test_a_line_without_a_carried_value_rises_from_zero_at_its_first_sample() -> None:
    slot = Slot(FROM + 50, FROM + 50, 3.0, 3.0, 3.0, False, False)
    line = render(None, [slot], window())
    assert line[:2] == [(1_700_000_050_000, 0.0), (1_700_000_050_000, 3.0)]


def test_a_series_silent_for_over_fifteen_minutes_drops_to_zero_then() -> None:
    slot = Slot(FROM + 50, FROM + 50, 3.0, 3.0, 3.0, False, False)
    line = render(None, [slot], window())
    assert line[2:] == [(1_700_000_950_000, 3.0), (1_700_000_950_000, 0.0), (1_700_012_000_000, 0.0)]


def test_a_climb_has_a_vertex_at_each_slot_boundary() -> None:
    slot = Slot(FROM + 50, FROM + 50, 10.0, 10.0, 10.0, True, True)
    line = render(None, [slot], Window(FROM, FROM + 500, 100.0))
    assert line == [
        (1_700_000_050_000, 0.0),
        (1_700_000_050_000, 10.0),
        (1_700_000_100_000, 60.0),
        (1_700_000_200_000, 160.0),
        (1_700_000_300_000, 260.0),
        (1_700_000_400_000, 360.0),
        (1_700_000_500_000, 460.0),
    ]


def test_a_head_that_began_in_the_future_is_never_drawn_below_zero() -> None:
    """Field case F60."""
    slot = Slot(FROM + 60, FROM + 60, -20.0, -20.0, -20.0, True, True)
    line = render(None, [slot], Window(FROM, FROM + 120, 1.0))
    assert min(value for _, value in line) == 0.0
    assert line[-1] == (1_700_000_120_000, 40.0)
