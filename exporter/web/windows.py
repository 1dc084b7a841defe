"""Pure: the query of a request as values. Whatever is malformed is a `BadRequest` that names its field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from multidict import MultiMapping

from exporter.errors import BadRequest, BadWindow
from exporter.queue.samples import Kind
from exporter.queue.window import MAX_WINDOW_MS, MIN_WINDOW_MS, RequestedWindow

INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
NUMBER: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", re.ASCII)


def parse_window(query: MultiMapping[str]) -> RequestedWindow:
    """`from` and `to` in epoch milliseconds; both may be missing."""
    return RequestedWindow(_parse_bound(query, "from"), _parse_bound(query, "to"))


def parse_windmill_window(query: MultiMapping[str]) -> RequestedWindow:
    """As `parse_window`, or Windmill's own `window_secs`, clamped to 60 s to 14 days, up to now."""
    asked = parse_window(query)
    seconds = _parse_bound(query, "window_secs", "seconds")
    if seconds is None or asked != RequestedWindow():
        return asked
    return RequestedWindow(length_ms=min(max(seconds * 1000, MIN_WINDOW_MS), MAX_WINDOW_MS))


def parse_tags(query: MultiMapping[str]) -> tuple[str, ...] | None:
    """`tags`, separated by commas, and any number of `tag`, each taken literally; None means all."""
    listed = [part.strip() for text in query.getall("tags", []) for part in text.split(",")]
    tags = [tag for tag in (*listed, *query.getall("tag", [])) if tag]
    return tuple(dict.fromkeys(tags)) or None


def parse_kind(query: MultiMapping[str]) -> Kind:
    """`series`: count or delay."""
    return Kind(parse_choice(query, "series", tuple(Kind)))


def parse_choice(query: MultiMapping[str], field: str, choices: Sequence[str]) -> str:
    """One of `choices`; the first when the field is missing."""
    text = query.get(field, choices[0])
    if text not in choices:
        raise BadRequest(f'{field}: expected {" or ".join(choices)}, got "{_shown(text)}"', field=field)
    return text


def parse_step(query: MultiMapping[str]) -> float | None:
    """`step` in seconds, above 0; None when it is missing."""
    text = query.get("step")
    if text is None:
        return None
    if not NUMBER.fullmatch(text) or float(text) == 0:
        raise BadRequest(f'step: expected a number of seconds above 0, got "{_shown(text)}"', field="step")
    return float(text)


def _parse_bound(query: MultiMapping[str], field: str, unit: str = "milliseconds since 1970") -> int | None:
    text = query.get(field)
    if text is None:
        return None
    if not INTEGER.fullmatch(text):
        raise BadWindow(f'{field}: expected {unit} as an integer, got "{_shown(text)}"', field=field)
    return int(text)


def _shown(text: str) -> str:
    return text[:40]
