"""Windmill's four settings, read as its own server reads them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from exporter.config import FairnessPins
from exporter.fairness.settings import DURATION_SECS, ENABLED, MAX_PERCENT, MIN_TOTAL_JOBS, parse_settings
from exporter.fairness.values import SettingSource
from tests.strategies import json_values

NO_PINS = FairnessPins()


def test_without_rows_everything_is_windmills_default() -> None:
    parsed = parse_settings({}, NO_PINS)
    settings = parsed.settings
    assert (settings.enabled, settings.max_percent, settings.window_seconds) == (False, 50, 10)
    assert settings.min_total_worker_seconds == 4
    assert set(settings.sources.values()) == {SettingSource.DEFAULT}
    assert parsed.problems == ()


@pytest.mark.parametrize(
    ("text", "expected", "reported"),
    [
        ("60", 60, False),
        ("0", 1, True),
        ("101", 100, True),
        ("50.0", 50, True),
        ("-1", 50, True),
        ('"60"', 50, True),
        ("null", 50, True),
        ("true", 50, True),
        ("[]", 50, True),
        ("9" * 30, 100, True),
    ],
)
def test_an_integer_is_clamped_or_replaced_by_its_default(text: str, expected: int, reported: bool) -> None:
    parsed = parse_settings({MAX_PERCENT: text}, NO_PINS)
    assert parsed.settings.max_percent == expected
    assert bool(parsed.problems) is reported
    assert all(problem.startswith(MAX_PERCENT) for problem in parsed.problems)


def test_ranges_are_windmills() -> None:
    parsed = parse_settings({DURATION_SECS: "0", MIN_TOTAL_JOBS: str(2**40)}, NO_PINS).settings
    assert parsed.window_seconds == 1
    assert parsed.min_total_worker_seconds == 2**32 - 1
    assert parse_settings({DURATION_SECS: "100000"}, NO_PINS).settings.window_seconds == 86_400


@pytest.mark.parametrize(("text", "enabled"), [("true", True), ("false", False), ("1", False), ('"true"', False)])
def test_only_a_boolean_enables(text: str, enabled: bool) -> None:
    assert parse_settings({ENABLED: text}, NO_PINS).settings.enabled is enabled


def test_a_pin_wins_and_silences_what_it_replaces() -> None:
    parsed = parse_settings({ENABLED: "17", MAX_PERCENT: "30"}, FairnessPins(enabled=True, max_percent=70))
    assert (parsed.settings.enabled, parsed.settings.max_percent) == (True, 70)
    assert parsed.settings.sources[ENABLED] is SettingSource.FILE
    assert parsed.problems == ()


@given(json_values)
def test_no_stored_value_raises(value: object) -> None:
    text = json.dumps(value)
    settings = parse_settings({ENABLED: text, MAX_PERCENT: text, DURATION_SECS: text}, NO_PINS).settings
    assert 1 <= settings.max_percent <= 100
    assert 1 <= settings.window_seconds <= 86_400
