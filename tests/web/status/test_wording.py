"""Numbers, times and names as people read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.web.status import wording
from exporter.web.status.wording import enumerated, shortened, shown_name, visible
from tests.web.status.scenes import plain

AT = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0, "0 %"),
        (0.0000001, "< 0.1 %"),
        (0.0005, "0.1 %"),
        (0.0518, "5.2 %"),
        (0.05, "5 %"),
        (0.0994, "9.9 %"),
        (0.0996, "10 %"),
        (0.784, "78 %"),
        (0.9949, "99 %"),
        (0.996, "> 99 %"),
        (1, "100 %"),
        (-0.2, "0 %"),
    ],
)
def test_a_ratio_is_a_percentage_that_never_claims_nothing_or_everything_falsely(ratio: float, text: str) -> None:
    assert wording.percent(ratio).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    ("seconds", "text", "past"),
    [
        (-5, "0 s", "just now"),
        (0.99, "0 s", "just now"),
        (1, "1 s", "1 s ago"),
        (59.9, "59 s", "59 s ago"),
        (60, "1 min", "1 min ago"),
        (192, "3 min 12 s", "3 min ago"),
        (3_599, "59 min 59 s", "59 min ago"),
        (3_600, "1 h", "1 h ago"),
        (7_500, "2 h 5 min", "2 h ago"),
        (86_400 * 3 + 4 * 3_600 + 59, "3 d 4 h", "3 d ago"),
        (86_400 * 1_234, "1,234 d", "1,234 d ago"),
    ],
)
def test_a_duration_has_its_two_largest_units_and_an_age_the_largest(seconds: float, text: str, past: str) -> None:
    assert wording.duration(seconds).replace("\u00a0", " ") == text
    assert wording.ago(seconds).replace("\u00a0", " ") == past


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0001, "0.001 s"), (0.1, "0.1 s"), (0.96, "1 s"), (3.44, "3.4 s"), (34, "34 s"), (125, "2 min 5 s")],
)
def test_a_mean_may_be_below_a_second(seconds: float, text: str) -> None:
    assert wording.mean(seconds).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0"), (0.44, "0.4"), (3, "3"), (9.94, "9.9"), (9.96, "10"), (1234, "1,234")]
)
def test_worker_seconds_have_a_decimal_while_they_are_few(seconds: float, text: str) -> None:
    assert wording.seconds_of_work(seconds) == text


@pytest.mark.parametrize(
    ("age", "exact", "text"),
    [
        (60, False, "08:00 UTC"),
        (60, True, "08:00:00 UTC"),
        (86_400, False, "15 Jan 08:00 UTC"),
        (86_400, True, "15 Jan 08:00 UTC"),
        (-86_400, False, "15 Jan 08:00 UTC"),
    ],
)
def test_a_time_of_another_day_has_its_date(age: float, exact: bool, text: str) -> None:
    assert wording.clock(AT, age, exact=exact).replace("\u00a0", " ") == text


@pytest.mark.parametrize("at", [-1e300, 1e300, math.inf, -math.inf, math.nan])
def test_a_time_that_no_calendar_has_is_no_error(at: float) -> None:
    assert wording.clock(at, 0)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d"], "a, b and 2 others"),
        ([str(number) for number in range(1_236)], "0, 1 and 1,234 others"),
    ],
)
def test_names_are_listed_up_to_three(names: list[str], text: str) -> None:
    assert plain(enumerated(names)) == text


def test_what_does_not_print_or_turns_the_direction_is_shown_as_its_escape() -> None:
    assert visible("a\u202eb\x1b\n\u2066\ud800\U000e0001") == "a\\u202eb\\x1b\\x0a\\u2066\\ud800\\U000e0001"


def test_scripts_keep_their_joiners() -> None:
    family = "\N{MAN}\u200d\N{WOMAN}"
    assert visible(family) == family


@given(st.text())
def test_a_shown_name_can_be_encoded_is_not_blank_and_holds_no_control_character(text: str) -> None:
    shown = shown_name(text)
    assert shown.encode()
    assert shown.strip()
    assert all(one.isprintable() or one in wording.JOINERS for one in shown)


def test_a_name_in_a_sentence_is_cut_to_forty_characters() -> None:
    assert shortened("x" * 40) == "x" * 40
    assert shortened("x" * 255) == "x" * 39 + "…"
