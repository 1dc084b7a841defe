"""Pure: one reading of the cluster as the fleet shares it, in the row `windmill_exporter_fairness`.

Versioned JSON of our own. What another version or a stranger wrote is no reading; owed audit rows in it are kept all
the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from exporter.fairness.payload import build_payload, parse_payload
from exporter.fairness.stored_json import decode_json, is_number
from exporter.fairness.values import FairnessReading, OwedAudit, ServiceTimes, WorkspaceUsage

READING_ROW = "windmill_exporter_fairness"
VERSION = 1
EMPTY = '{"version":1}'
# A row is rewritten every cycle: these bounds keep it under about 100 kB whatever the cluster does.
MAX_STORED_WORKSPACES = 500
MAX_OWED = 500


@dataclass(frozen=True, slots=True)
class StoredReading:
    """What the row holds: a reading, when it can be read, and the audit rows owed to Windmill."""

    reading: FairnessReading | None = None
    owed: tuple[OwedAudit, ...] = ()


def summed_up(usage: Iterable[WorkspaceUsage], *, read_at: float, by: str, window_seconds: int) -> FairnessReading:
    """A reading of `usage` in which all but the largest workspaces are summed up."""
    ranked = sorted(usage, key=lambda one: (-one.worker_micros, -one.service.seconds, one.workspace))
    rest = ranked[MAX_STORED_WORKSPACES:]
    return FairnessReading(
        read_at=read_at,
        by=by,
        window_seconds=window_seconds,
        usage=tuple(ranked[:MAX_STORED_WORKSPACES]),
        other_micros=sum(one.worker_micros for one in rest),
        other_workspaces=len(rest),
        other_service=ServiceTimes(sum(one.service.jobs for one in rest), sum(one.service.seconds for one in rest)),
    )


def build_reading(reading: FairnessReading) -> str:
    """The JSON text to store; of the owed audit rows the newest 500."""
    other = reading.other_service
    stored = {
        "version": VERSION,
        "at": reading.read_at,
        "by": reading.by,
        "window_seconds": reading.window_seconds,
        "usage": [[one.workspace, one.worker_micros, one.service.jobs, one.service.seconds] for one in reading.usage],
        "other": [reading.other_workspaces, reading.other_micros, other.jobs, other.seconds],
        "since": dict(reading.capped_since),
        "owed": [
            {
                "operation": owed.operation,
                "workspace": owed.workspace,
                "at": owed.at,
                "parameters": None if owed.parameters is None else dict(owed.parameters),
            }
            for owed in reading.owed[-MAX_OWED:]
        ],
        "decided": None if reading.decided is None else json.loads(build_payload(reading.decided)),
    }
    return json.dumps(stored, ensure_ascii=False, separators=(",", ":"))


def parse_reading(text: str | None) -> StoredReading:
    """What the row holds. Never raises."""
    stored = decode_json(text)
    if not isinstance(stored, dict):
        return StoredReading()
    owed = _parse_owed(stored.get("owed"))
    if stored.get("version") != VERSION or "at" not in stored:
        return StoredReading(None, owed)
    try:
        return StoredReading(_parse_version_1(stored, owed), owed)
    except (KeyError, TypeError, ValueError):
        return StoredReading(None, owed)


def _parse_version_1(stored: Mapping[str, Any], owed: tuple[OwedAudit, ...]) -> FairnessReading:
    other_workspaces, other_micros, other_jobs, other_seconds = stored["other"]
    decided = stored["decided"]
    return FairnessReading(
        read_at=_number(stored["at"]),
        by=str(stored["by"]),
        window_seconds=int(_number(stored["window_seconds"])),
        usage=tuple(
            WorkspaceUsage(str(workspace), _count(micros), ServiceTimes(_count(jobs), _number(seconds)))
            for workspace, micros, jobs, seconds in stored["usage"]
        ),
        other_micros=_count(other_micros),
        other_workspaces=_count(other_workspaces),
        other_service=ServiceTimes(_count(other_jobs), _number(other_seconds)),
        capped_since=_parse_since(stored["since"]),
        owed=owed,
        decided=None if decided is None else parse_payload(json.dumps(decided), target_ppm=0).payload,
    )


def _parse_since(stored: object) -> Mapping[str, float]:
    if not isinstance(stored, dict):
        raise TypeError("expected an object")
    return MappingProxyType({str(name): _number(at) for name, at in stored.items()})


def _parse_owed(stored: object) -> tuple[OwedAudit, ...]:
    rows = stored if isinstance(stored, list) else []
    return tuple(
        OwedAudit(row["operation"], row["workspace"], float(row["at"]), _parse_parameters(row.get("parameters")))
        for row in rows
        if isinstance(row, dict)
        and isinstance(row.get("operation"), str)
        and isinstance(row.get("workspace"), str)
        and is_number(row.get("at"))
    )


def _parse_parameters(stored: object) -> Mapping[str, str] | None:
    if not isinstance(stored, dict):
        return None
    return MappingProxyType({str(key): str(value) for key, value in stored.items()})


def _number(value: object) -> float:
    if not is_number(value):
        raise ValueError("expected a number")
    return float(value)  # type: ignore[arg-type]  # is_number() has just said that it is one


def _count(value: object) -> int:
    number = _number(value)
    if number < 0 or number != int(number):
        raise ValueError("expected a count")
    return int(number)
