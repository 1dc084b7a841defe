"""Queries as values; what is malformed is refused by the name of its field."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import MultiDict

from exporter.errors import BadRequest
from exporter.queue.history import Kind, RequestedWindow
from exporter.web.windows import (
    parse_choice,
    parse_kind,
    parse_step,
    parse_tags,
    parse_windmill_window,
    parse_window,
)

DAY_MS = 86_400_000


def query(text: str) -> MultiDict[str]:
    return MultiDict(part.partition("=")[::2] for part in text.split("&") if part)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("", RequestedWindow()),
        ("from=1700000000000", RequestedWindow(from_ms=1_700_000_000_000)),
        ("from=-5&to=+7", RequestedWindow(-5, 7)),
        ("to=999999999999999999&other=x", RequestedWindow(to_ms=999_999_999_999_999_999)),
    ],
)
def test_bounds_are_integers(text: str, window: RequestedWindow) -> None:
    assert parse_window(query(text)) == window


@pytest.mark.parametrize("bound", ["from", "to", "window_secs"])
@pytest.mark.parametrize("value", ["", "abc", "1.5", "1e9", "NaN", "0x10", "1_000", " 1", "\u0661", "9" * 19, "now-6h"])
def test_a_malformed_bound_is_refused_by_its_name(bound: str, value: str) -> None:
    with pytest.raises(BadRequest, match=rf"^{bound}: expected ") as refused:
        parse_windmill_window(MultiDict({bound: value}))
    assert refused.value.field == bound


@pytest.mark.parametrize(
    ("text", "length_ms"),
    [
        ("", DAY_MS),
        ("window_secs=3600", 3_600_000),
        ("window_secs=0", 60_000),
        ("window_secs=-5", 60_000),
        ("window_secs=999999999999", 14 * DAY_MS),
    ],
)
def test_windmills_own_window_is_clamped(text: str, length_ms: int) -> None:
    assert parse_windmill_window(query(text)) == RequestedWindow(length_ms=length_ms)


def test_explicit_bounds_win_over_a_length() -> None:
    assert parse_windmill_window(query("window_secs=3600&from=5")) == RequestedWindow(from_ms=5)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("", None),
        ("tags=", None),
        ("tags=,,", None),
        ("tags=a,b, c ,a", ("a", "b", "c")),
        ("tag=a,b", ("a,b",)),
        ("tag=a&tags=b,c&tag=d", ("b", "c", "a", "d")),
    ],
)
def test_tags_are_listed_or_literal(text: str, tags: tuple[str, ...] | None) -> None:
    assert parse_tags(query(text)) == tags


@given(st.text())
def test_any_text_may_be_a_tag(text: str) -> None:
    assert parse_tags(MultiDict({"tag": text})) == ((text,) if text else None)


def test_kinds_and_choices() -> None:
    assert parse_kind(query("")) is Kind.COUNT
    assert parse_kind(query("series=delay")) is Kind.DELAY
    with pytest.raises(BadRequest, match=r'^series: expected count or delay, got "queue_count"'):
        parse_kind(query("series=queue_count"))
    with pytest.raises(BadRequest, match=r"^ties: expected exact or nudge"):
        parse_choice(query("ties=1"), "ties", ("exact", "nudge"))


@pytest.mark.parametrize(("text", "step"), [("", None), ("step=60", 60.0), ("step=0.5", 0.5)])
def test_steps_are_seconds(text: str, step: float | None) -> None:
    assert parse_step(query(text)) == step


@pytest.mark.parametrize("value", ["", "0", "0.0", "-5", "1m", "inf", "nan", "1e3", "9" * 13])
def test_a_step_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(BadRequest, match=r"^step: expected a number of seconds above 0"):
        parse_step(MultiDict({"step": value}))


def test_a_message_shows_no_more_than_the_beginning_of_a_value() -> None:
    with pytest.raises(BadRequest) as refused:
        parse_window(MultiDict({"from": "x" * 10_000}))
    assert len(str(refused.value)) < 120
