"""The strict reader refuses what it is there to refuse."""

from __future__ import annotations

import pytest

from exporter.web.openapi import document
from tests.fuzz.strict import Description, WellFormed, read_json


@pytest.mark.parametrize("body", [b"NaN", b'{"a": Infinity}', b'"\\ud800"', b'"\xff"', b"", b"[1,]"])
def test_what_is_not_standard_json_fails(body: bytes) -> None:
    with pytest.raises((AssertionError, ValueError)):
        read_json(body)


@pytest.mark.parametrize(
    "page",
    [
        "<p>",
        "<b><i></b></i>",
        "</p>",
        '<p id="a" id="b"></p>',
        '<p onclick="x"></p>',
        "<script>x</script>",
        "<img src=x>",
    ],
)
def test_a_page_that_is_not_well_formed_fails(page: str) -> None:
    with pytest.raises(AssertionError):
        WellFormed(page)


@pytest.mark.parametrize(
    ("status", "content_type", "body"),
    [
        (418, "application/json", b"{}"),
        (200, "text/plain", b"{}"),
        (200, "application/json", b'{"deno": 1.5}'),
        (503, "application/json", b'{"message": "", "error": {"code": "a", "message": ""}}'),
        (503, "application/json", b'{"message": "only"}'),
        (200, "application/json", b'{"Traceback": 1}'),
    ],
)
def test_an_answer_that_is_not_described_fails(status: int, content_type: str, body: bytes) -> None:
    with pytest.raises((AssertionError, ValueError)):
        Description(read_json(document(""))).check("/api/workers/queue_counts", "GET", status, content_type, body)
