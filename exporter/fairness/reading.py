"""Pure: one reading of the cluster as the fleet shares it, in the row `windmill_exporter_fairness`.

Versioned JSON of our own. What another version or a stranger wrote is no reading; owed audit rows in it are kept all
the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar

import msgspec

from exporter.fairness.values import FairnessReading, OwedAudit, Payload, ServiceTimes, WorkspaceUsage

READING_ROW = "windmill_exporter_fairness"
EMPTY = '{"version":1}'
# A row is rewritten every cycle: these bounds keep it under about 100 kB whatever the cluster does.
MAX_STORED_WORKSPACES = 500
MAX_OWED = 500


Stored = TypeVar("Stored", bound=msgspec.Struct)
Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class _Usage(msgspec.Struct, frozen=True, array_like=True):
    workspace: str
    micros: Count
    jobs: Count
    seconds: Seconds


class _Other(msgspec.Struct, frozen=True, array_like=True):
    workspaces: Count
    micros: Count
    jobs: Count
    seconds: Seconds


class _Owed(msgspec.Struct, frozen=True):
    operation: str
    workspace: str
    at: float
    parameters: dict[str, str] | None = None


class _Decided(msgspec.Struct, frozen=True):
    overloaded: tuple[str, ...]
    admission_ppm: int


class _Owing(msgspec.Struct, frozen=True):
    """What is read of the row of any version."""

    owed: tuple[_Owed, ...] = ()


class _Reading(_Owing, frozen=True, kw_only=True):
    version: Literal[1]
    at: float
    by: str
    window_seconds: Count
    usage: tuple[_Usage, ...]
    other: _Other
    since: dict[str, float]
    decided: _Decided | None


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
    service, decided = reading.other_service, reading.decided
    stored = _Reading(
        version=1,
        at=reading.read_at,
        by=reading.by,
        window_seconds=reading.window_seconds,
        usage=tuple(
            _Usage(one.workspace, one.worker_micros, one.service.jobs, one.service.seconds) for one in reading.usage
        ),
        other=_Other(reading.other_workspaces, reading.other_micros, service.jobs, service.seconds),
        since=dict(reading.capped_since),
        owed=tuple(
            _Owed(owed.operation, owed.workspace, owed.at, None if owed.parameters is None else dict(owed.parameters))
            for owed in reading.owed[-MAX_OWED:]
        ),
        decided=None if decided is None else _Decided(decided.overloaded, decided.admission_ppm),
    )
    return msgspec.json.encode(stored).decode()


def parse_reading(text: str | None) -> StoredReading:
    """What the row holds. Never raises."""
    owing = _decode(text, _Owing)
    owed = tuple(OwedAudit(row.operation, row.workspace, row.at, row.parameters) for row in owing.owed) if owing else ()
    stored = _decode(text, _Reading)
    if stored is None:
        return StoredReading(None, owed)
    other, decided = stored.other, stored.decided
    reading = FairnessReading(
        read_at=stored.at,
        by=stored.by,
        window_seconds=stored.window_seconds,
        usage=tuple(
            WorkspaceUsage(one.workspace, one.micros, ServiceTimes(one.jobs, one.seconds)) for one in stored.usage
        ),
        other_micros=other.micros,
        other_workspaces=other.workspaces,
        other_service=ServiceTimes(other.jobs, other.seconds),
        capped_since=MappingProxyType(stored.since),
        owed=owed,
        decided=None if decided is None else Payload(decided.overloaded, decided.admission_ppm),
    )
    return StoredReading(reading if _has_unique_workspaces(reading) else None, owed)


def _decode(text: str | None, kind: type[Stored]) -> Stored | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return None


def _has_unique_workspaces(reading: FairnessReading) -> bool:
    """A name twice would become a duplicate series."""
    return len({one.workspace for one in reading.usage}) == len(reading.usage)
