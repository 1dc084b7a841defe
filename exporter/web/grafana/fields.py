"""Pure: the fields of a client's JSON. Whatever one holds, it is read, or refused by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from exporter.errors import BadRequest

NUMBER: Final = re.compile(r"\s*[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?\s*")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
# What a JavaScript Date can hold, and so the widest range that Grafana can send.
MAX_EPOCH_MS: Final = 8_640_000_000_000_000
SHOWN_CHARACTERS: Final = 80
# Python refuses to write integers of thousands of digits.
MAX_WRITTEN_INTEGER: Final = 10**30


def refusal(field: str, expected: str, value: object) -> BadRequest:
    """The error that says what `field` should hold, and what it does."""
    return BadRequest(f"{field}: expected {expected}, got {shown(value)}", field=field)


def shown(value: object) -> str:
    """A decoded JSON value as an error message quotes it, short whatever it is."""
    if isinstance(value, str):
        text = value[:SHOWN_CHARACTERS]
        text = text if text.isprintable() else ascii(text)[1:-1]
        return f'"{text}"' if len(value) <= SHOWN_CHARACTERS else f'"{text}..."'
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and abs(value) >= MAX_WRITTEN_INTEGER:
        return "a very large number"
    return "null" if value is None else str(value).lower()


def read_object(value: object, field: str) -> Mapping[str, Any]:
    """An object; empty where there is none."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise refusal(field, "an object", value)


def read_list(value: object, field: str) -> Sequence[Any]:
    """A list; empty where there is none."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    raise refusal(field, "a list", value)


def read_text(value: object, field: str) -> str:
    """A text, or a number as it is written; empty where there is none."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            raise refusal(field, "a text", value)
        case int() if abs(value) < MAX_WRITTEN_INTEGER:
            return str(value)
        case float():
            return f"{value:.17g}"
    raise refusal(field, "a text", value)


def read_number(value: object, field: str) -> float | None:
    """A number or its text; None where there is none. Whole numbers stay exact, however large."""
    match value:
        case None | "":
            return None
        case bool():
            raise refusal(field, "a number", value)
        case int() | float():
            return value
        case str() if NUMBER.fullmatch(value):
            return int(value) if value.strip().lstrip("+-").isdecimal() else float(value)
    raise refusal(field, "a number", value)


def read_epoch_ms(value: object, field: str) -> int | None:
    """A moment in epoch milliseconds, from a number of them or an ISO 8601 instant (without an offset: UTC)."""
    if isinstance(value, str) and value.strip() and not NUMBER.fullmatch(value):
        return _parse_instant(value, field)
    number = read_number(value, field)
    if number is None:
        return None
    if not -MAX_EPOCH_MS <= number <= MAX_EPOCH_MS:
        raise refusal(field, "epoch milliseconds", value)
    return round(number)


def read_payload(*values: object) -> Mapping[str, Any]:
    """The first of `values` that is an object or its JSON text, and not empty. A half-typed text is no payload yet."""
    for value in values:
        decoded = value
        if isinstance(value, str):
            try:
                decoded = msgspec.json.decode(value)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                continue
        if isinstance(decoded, Mapping) and decoded:
            return decoded
    return {}


def _parse_instant(text: str, field: str) -> int:
    try:
        instant = datetime.fromisoformat(text.strip().upper())
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        return (instant - EPOCH) // MILLISECOND
    except (ValueError, OverflowError):
        raise refusal(field, "an instant such as 2026-01-31T12:00:00Z or epoch milliseconds", text) from None
