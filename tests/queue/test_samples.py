"""The pure rules of the sampler: what a stored value means, and when a reading becomes a row."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.queue.samples import (
    DELAY_TOLERANCE,
    HEARTBEAT_SECONDS,
    MIN_SPACING_SECONDS,
    Backlog,
    Climbing,
    Held,
    HeldSince,
    Kind,
    NewSample,
    Sample,
    delay_sample,
    head_since,
    new_sample,
    parse_value,
    should_store,
    split_id,
    value_at,
)
from tests.sources import CASES

SAMPLER_CASES: list[dict[str, Any]] = json.loads((CASES / "sampler.json").read_text())["cases"]

NOW = 1_700_000_000.0
ages = st.floats(min_value=0, max_value=899.999)
counts = st.integers(min_value=1, max_value=10**9)
heads = st.floats(min_value=NOW - 10**6, max_value=NOW - 3)
backlogs = st.builds(Backlog, counts, heads)
held = st.builds(Held, st.floats(min_value=-(10**6), max_value=10**9))
climbing = st.builds(Climbing, st.floats(min_value=NOW - 10**6, max_value=NOW + 60))
samples = st.builds(lambda age, value: Sample(NOW - age, value), ages, held | climbing)
kinds = st.sampled_from(Kind)


def _as_case(sample: NewSample | None) -> dict[str, Any] | None:
    match sample:
        case Held(value):
            return {"value": value}
        case Climbing(since):
            return {"value": {"since": since}}
        case HeldSince(since):
            return {"held_head_since": since}
    return None


@pytest.mark.parametrize("case", SAMPLER_CASES, ids=range(len(SAMPLER_CASES)))
def test_every_case_of_the_reference_is_decided_as_written(case: dict[str, Any]) -> None:
    last = None
    if case["last"] is not None:
        value = parse_value(json.dumps(case["last"]["value"]))
        assert value is not None
        last = Sample(case["last"]["at"], value)
    reading = case["reading"]
    backlog = None if reading is None else Backlog(reading["count"], reading["head_since"])
    assert _as_case(new_sample(Kind(case["kind"]), case["now"], last, backlog)) == case["stored"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", Held(0)),
        ("-3.5", Held(-3.5)),
        ("1e-400", Held(0)),
        (str(10**300), Held(1e300)),
        ('{"since": 1700000000.123456}', Climbing(1700000000.123456)),
        ('{"since": 5, "by": "a later version"}', Climbing(5)),
    ],
)
def test_numbers_and_objects_with_a_numeric_since_are_readable(text: str, value: Held | Climbing) -> None:
    assert parse_value(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "true",
        '"5"',
        "[]",
        "[5]",
        "{}",
        '{"since": null}',
        '{"since": "123"}',
        '{"since": true}',
        '{"since": {"since": 1}}',
        '{"SINCE": 1}',
        "NaN",
        "Infinity",
        '{"since": NaN}',
        "1e400",
        str(10**400),
        '{"since": 1e400}',
        "9" * 5000,
        "[" * 100_000,
        "",
        "{",
    ],
)
def test_everything_else_is_unreadable_and_never_an_error(text: str) -> None:
    assert parse_value(text) is None


@given(st.text())
def test_parsing_never_raises(text: str) -> None:
    value = parse_value(text)
    assert value is None or math.isfinite(value_at(Sample(NOW, value), NOW))


@given(kinds, st.text())
def test_a_tag_may_hold_any_character(kind: Kind, tag: str) -> None:
    assert split_id(kind.series_id(tag)) == (kind, tag)


@pytest.mark.parametrize(
    "series_id", ["queue_counts", "queueXcount_deno", "queue_other_deno", "other_queue_count_x", ""]
)
def test_ids_of_others_are_not_series(series_id: str) -> None:
    assert split_id(series_id) is None


def test_a_climb_grows_by_itself_and_keeps_its_head() -> None:
    sample = Sample(NOW - 100, Climbing(NOW - 150))
    assert value_at(sample, NOW) == 150
    assert head_since(sample) == NOW - 150


def test_the_head_of_a_held_delay_is_when_it_was_written_less_its_value() -> None:
    sample = Sample(NOW - 100, Held(50))
    assert value_at(sample, NOW) == 50
    assert head_since(sample) == NOW - 150


@given(kinds, samples, backlogs)
def test_rows_of_a_backlog_are_at_least_25_s_apart_and_at_most_a_heartbeat(
    kind: Kind, last: Sample, backlog: Backlog
) -> None:
    age = NOW - last.at
    if age < MIN_SPACING_SECONDS:
        assert not should_store(kind, NOW, last, backlog)
    if age >= HEARTBEAT_SECONDS:
        assert should_store(kind, NOW, last, backlog)


@given(kinds, samples, backlogs)
def test_a_row_just_written_is_never_written_again(kind: Kind, last: Sample, backlog: Backlog) -> None:
    """Whatever was stored, the decision on the stored row itself is silence: a second sampler adds nothing."""
    stored = new_sample(kind, NOW, last, backlog)
    if stored is not None:
        value = Held(NOW - stored.head_since) if isinstance(stored, HeldSince) else stored
        assert new_sample(kind, NOW + 1, Sample(NOW, value), backlog) is None


@given(kinds, samples | st.none())
def test_a_drain_is_written_once(kind: Kind, last: Sample | None) -> None:
    stored = new_sample(kind, NOW, last, None)
    assert stored in (None, Held(0))
    assert new_sample(kind, NOW + 500, Sample(NOW, Held(0)), None) is None


@given(samples, backlogs)
def test_between_spacing_and_heartbeat_a_delay_within_a_tenth_is_left_alone(last: Sample, backlog: Backlog) -> None:
    drawn, delay = value_at(last, NOW), NOW - backlog.head_since
    if MIN_SPACING_SECONDS <= NOW - last.at < HEARTBEAT_SECONDS:
        expected = abs(delay - drawn) > DELAY_TOLERANCE * abs(drawn)
        assert should_store(Kind.DELAY, NOW, last, backlog) is expected


@given(samples | st.none(), backlogs)
def test_a_delay_climbs_exactly_when_the_head_is_the_same_within_a_second(
    last: Sample | None, backlog: Backlog
) -> None:
    same = last is not None and abs(head_since(last) - backlog.head_since) < 1
    assert delay_sample(last, backlog) == (Climbing(backlog.head_since) if same else HeldSince(backlog.head_since))


def test_a_tag_that_nobody_serves_costs_a_row_a_heartbeat() -> None:
    """24 h of a backlog that never moves, read every 10 s: 250 to 290 rows a series, one `since` (field case F39)."""
    backlog = Backlog(9, NOW - 5)
    rows: dict[Kind, list[tuple[float, NewSample]]] = {kind: [] for kind in Kind}
    last: dict[Kind, Sample] = {}
    for tick in range(24 * 360):
        now = NOW + tick * 10
        for kind in Kind:
            stored = new_sample(kind, now, last.get(kind), backlog)
            if stored is not None:
                rows[kind].append((now, stored))
                value = Held(now - stored.head_since) if isinstance(stored, HeldSince) else stored
                last[kind] = Sample(now, value)
    assert 250 <= len(rows[Kind.COUNT]) <= 290
    assert 250 <= len(rows[Kind.DELAY]) <= 290
    assert isinstance(rows[Kind.DELAY][0][1], HeldSince)
    assert {sample for _, sample in rows[Kind.DELAY][1:]} == {Climbing(NOW - 5)}
    gaps = [after - before for (before, _), (after, _) in zip(rows[Kind.COUNT], rows[Kind.COUNT][1:], strict=False)]
    assert set(gaps) == {300.0}
