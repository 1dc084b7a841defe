"""Pure: the decision as Windmill stores it, `{"overloaded": [...], "admission_ppm": N}`, parsed and built.

The shape is shared with Windmill's own refresh: both may run against one database and take turns.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from exporter.database.stored_json import decode_json
from exporter.fairness.values import ADMIT_ALL_PPM, Payload

PAYLOAD_ROW = "workspace_fairness"
DRAINED = Payload()
KEYS = frozenset({"overloaded", "admission_ppm"})
# Every writer stores 64 at the most. Whoever leaves the list gets an audit row: a stranger's list must have an end.
MAX_READ_WORKSPACES = 1000


@dataclass(frozen=True, slots=True)
class ParsedPayload:
    """A payload and, one sentence each, what in the stored value could not be read as it stands."""

    payload: Payload
    problems: tuple[str, ...] = ()


def build_payload(payload: Payload) -> str:
    """The JSON text to store."""
    return json.dumps(
        {"overloaded": list(payload.overloaded), "admission_ppm": payload.admission_ppm},
        ensure_ascii=False,
        separators=(",", ":"),
    )


def parse_payload(text: str | None, *, target_ppm: int, last_good: Payload = DRAINED) -> ParsedPayload:
    """What the stored text says. What cannot be read keeps the value of `last_good` and is named in `problems`.

    A payload without `admission_ppm` is one of an older writer and means p_c = t (`target_ppm`).
    """
    stored = decode_json(text)
    if not isinstance(stored, dict):
        return ParsedPayload(last_good, ("the payload is not a JSON object",))
    problems = [f"unknown key {key[:50]!r}" for key in sorted(stored.keys() - KEYS)[:3]]
    payload = last_good
    if isinstance(stored.get("overloaded"), list):
        names = [name for name in stored["overloaded"] if isinstance(name, str)]
        if len(names) < len(stored["overloaded"]):
            problems.append("overloaded holds values that are not strings")
        unique = tuple(dict.fromkeys(names))
        if len(unique) > MAX_READ_WORKSPACES:
            problems.append(f"overloaded holds over {MAX_READ_WORKSPACES} workspaces")
        payload = replace(payload, overloaded=unique[:MAX_READ_WORKSPACES])
    else:
        problems.append("overloaded is missing or not a list")
    ppm, problem = _parse_ppm(stored, target_ppm)
    if problem:
        problems.append(problem)
    return ParsedPayload(replace(payload, admission_ppm=ppm), tuple(problems))


def _parse_ppm(stored: dict[str, Any], target_ppm: int) -> tuple[int, str | None]:
    if "admission_ppm" not in stored:
        return target_ppm, None
    value = stored["admission_ppm"]
    if not isinstance(value, int) or isinstance(value, bool):
        return target_ppm, "admission_ppm is not an integer"
    if not 0 <= value <= ADMIT_ALL_PPM:
        return max(0, min(ADMIT_ALL_PPM, value)), "admission_ppm is outside 0..10000"
    return value, None
