"""Pure: the tables of Grafana's JSON datasource: the queue and the shares as last read, and caps as annotations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec import UNSET

from exporter.fairness.audit import CAPPED
from exporter.fairness.events import Event
from exporter.fairness.values import MICROS, FairnessReading, FairnessSnapshot
from exporter.web.current_queue import CurrentTag
from exporter.web.grafana.answer import PLACES, Cell, Column, TableEntry
from exporter.web.grafana.request import Target
from exporter.web.grafana.tags import TagFilter, admitted

Row = tuple[Cell, ...]

QUEUE_COLUMNS: Final = (
    Column("time", "time"),
    Column("tag", "string"),
    Column("count", "number"),
    Column("delay", "number"),
    Column("running", "number"),
    Column("workers", "number"),
)
SHARE_COLUMNS: Final = (
    Column("time", "time"),
    Column("workspace", "string"),
    Column("share", "number"),
    Column("worker_seconds", "number"),
    Column("capped", "boolean"),
    Column("capped_since", "time"),
)
EVENT_COLUMNS: Final = (
    Column("time", "time"),
    Column("timeEnd", "time"),
    Column("title", "string"),
    Column("text", "string"),
    Column("tags", "string"),
)


def queue_table(target: Target, read_at: float, tags: Sequence[CurrentTag], filters: Iterable[TagFilter]) -> TableEntry:
    """One row for each tag with jobs waiting or running, as read at `read_at` (epoch seconds)."""
    named = None if target.tags is None else frozenset(target.tags)
    wanted = frozenset(admitted((one.tag for one in tags if named is None or one.tag in named), filters))
    rows = [
        (round(read_at * 1000), one.tag, one.waiting, round(one.delay_seconds or 0.0, PLACES), one.running, one.workers)
        for one in tags
        if one.tag in wanted
    ]
    return _table(target, QUEUE_COLUMNS, rows)


def shares_table(target: Target, snapshot: FairnessSnapshot, reading: FairnessReading) -> TableEntry:
    """One row a workspace, largest share of the cluster's worker-seconds first; a capped one without any has 0."""
    total = max(reading.total_micros, 1)
    held = {usage.workspace: usage.worker_micros for usage in reading.usage}
    held |= {name: 0 for name in snapshot.in_force.overloaded if name not in held}
    rows: list[Row] = []
    for workspace, micros in held.items():
        since = snapshot.in_force_since.get(workspace)
        capped = workspace in snapshot.in_force.overloaded
        since_ms = None if since is None else round(since * 1000)
        rows.append((round(reading.read_at * 1000), workspace, micros / total, micros / MICROS, capped, since_ms))
    return _table(target, SHARE_COLUMNS, rows)


def events_table(target: Target, events: Sequence[Event], from_ms: int, to_ms: int) -> TableEntry:
    """The caps and uncaps of a window as annotations, oldest first; a cap that ended spans its duration.

    `events` are newest first.
    """
    spans = sorted(_spans(events), key=lambda span: span.from_ms)
    rows: list[Row] = [
        (span.from_ms, span.to_ms, f"{span.workspace} {span.what}", span.text, f"fairness,{span.what}")
        for span in spans
        if span.from_ms <= to_ms and (span.to_ms or span.from_ms) >= from_ms
    ]
    return _table(target, EVENT_COLUMNS, rows)


@dataclass(frozen=True, slots=True)
class _Span:
    from_ms: int
    to_ms: int | None
    workspace: str
    what: str
    text: str


def _spans(events: Sequence[Event]) -> Iterator[_Span]:
    """A span for each cap, ended by the next uncap of its workspace; an uncap whose cap is not known stands alone."""
    open_caps: dict[str, _Span] = {}
    for event in reversed(events):
        at_ms, workspace = round(event.at * 1000), event.workspace
        cap = open_caps.pop(workspace, None)
        if event.operation == CAPPED:
            if cap is not None:
                yield cap
            open_caps[workspace] = _Span(at_ms, None, workspace, "capped", _cap_text(event.parameters))
        elif cap is not None:
            yield replace(cap, to_ms=at_ms)
        else:
            yield _Span(at_ms, None, workspace, "uncapped", "")
    yield from open_caps.values()


def _cap_text(parameters: Mapping[str, object] | None) -> str:
    """What Windmill's own parameters of a cap say, as a sentence; they are texts, and any of them may be missing."""
    given = parameters or {}
    percent, seconds = given.get("max_percent"), given.get("window_secs")
    return f"Held more than {percent} % of the workers' time over {seconds} s." if percent and seconds else ""


def _table(target: Target, columns: tuple[Column, ...], rows: Sequence[Row]) -> TableEntry:
    return TableEntry(ref_id=UNSET if target.ref_id is None else target.ref_id, columns=columns, rows=rows)
