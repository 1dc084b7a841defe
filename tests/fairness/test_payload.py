"""The stored decision: built in Windmill's shape, and read from whatever is there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.fairness.payload import DRAINED, ParsedPayload, build_payload, parse_payload
from exporter.fairness.values import Payload
from tests.strategies import json_values

GOOD = Payload(("a",), 100)


def read(text: str) -> ParsedPayload:
    return parse_payload(text, target_ppm=5500, last_good=GOOD)


def test_the_shape_is_windmills_own() -> None:
    assert json.loads(build_payload(Payload(("noisy", "ö"), 518))) == {
        "overloaded": ["noisy", "ö"],
        "admission_ppm": 518,
    }


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True), st.integers(0, 10_000))
def test_what_is_built_is_read_back(names: list[str], ppm: int) -> None:
    payload = Payload(tuple(names), ppm)
    assert read(build_payload(payload)) == ParsedPayload(payload)


def test_an_older_payload_without_admission_means_the_target() -> None:
    assert read('{"overloaded": ["b"]}') == ParsedPayload(Payload(("b",), 5500))


@pytest.mark.parametrize(
    ("text", "payload", "problem"),
    [
        ("[]", GOOD, "not a JSON object"),
        ("null", GOOD, "not a JSON object"),
        ('"text"', GOOD, "not a JSON object"),
        ('{"admission_ppm": 7}', Payload(("a",), 7), "overloaded is missing"),
        ('{"overloaded": "b", "admission_ppm": 7}', Payload(("a",), 7), "overloaded is missing or not a list"),
        ('{"overloaded": ["b", 1, null], "admission_ppm": 7}', Payload(("b",), 7), "not strings"),
        ('{"overloaded": ["b"], "admission_ppm": "7"}', Payload(("b",), 5500), "not an integer"),
        ('{"overloaded": ["b"], "admission_ppm": true}', Payload(("b",), 5500), "not an integer"),
        ('{"overloaded": ["b"], "admission_ppm": 7.5}', Payload(("b",), 5500), "not an integer"),
        ('{"overloaded": ["b"], "admission_ppm": 10001}', Payload(("b",), 10_000), "outside"),
        ('{"overloaded": ["b"], "admission_ppm": -1}', Payload(("b",), 0), "outside"),
        ('{"overloaded": ["b"], "admission_ppm": 7, "version": 2}', Payload(("b",), 7), "unknown key 'version'"),
        ('{"overloaded": ["b"], "admission_ppm": ' + "9" * 5000 + "}", GOOD, "not a JSON object"),
        ("[" * 100_000, GOOD, "not a JSON object"),
    ],
)
def test_what_can_be_read_is_used_and_the_rest_keeps_the_last_good_value(
    text: str, payload: Payload, problem: str
) -> None:
    parsed = read(text)
    assert parsed.payload == payload
    assert problem in "; ".join(parsed.problems)


@given(json_values)
def test_no_stored_value_raises(value: object) -> None:
    payload = read(json.dumps(value)).payload
    assert 0 <= payload.admission_ppm <= 10_000
    assert all(isinstance(name, str) for name in payload.overloaded)


def test_a_value_too_large_to_be_read_keeps_the_last_good_one() -> None:
    assert parse_payload(None, target_ppm=5500).payload == DRAINED
