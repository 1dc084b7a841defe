"""Pure: the backlog by tag, bounded to what a person reads, with the line of each tag's last hour."""

from __future__ import annotations

from collections.abc import Mapping

from exporter.metrics.queue import choose_tags
from exporter.queue.values import QueueReading, QueueSnapshot, TagReading
from exporter.web.status.values import Clocks, Moment, Sparkline, TagRow, Tags


def shown_tags(reading: QueueReading, limit: int) -> frozenset[str]:
    """The tags that have a row: the `limit` that metrics would export."""
    return choose_tags(frozenset(), reading, limit)


def tags(snapshot: QueueSnapshot, lines: Mapping[str, Sparkline] | None, clocks: Clocks, limit: int) -> Tags:
    """The rows of the shown tags; `lines` None: the stored series are not known (yet).

    Tags that nobody takes stand first, then by the magnitude of their backlog, then by name: rows that change places at
    every look cannot be read.
    """
    reading = snapshot.reading
    shown = shown_tags(reading, limit)
    line_of = lines or {}
    rows = [_row(one, reading.read_at, line_of.get(one.tag)) for one in reading.tags if one.tag in shown]
    rows += [TagRow(tag, 0, None, 0, None, line_of.get(tag)) for tag in reading.drained if tag in shown]
    left_out = [one for one in reading.tags if one.tag not in shown]
    age = snapshot.now - reading.read_at + clocks.monotonic - snapshot.observed_monotonic
    return Tags(
        read=Moment(reading.read_at, age),
        rows=tuple(sorted(rows, key=_calm_order)),
        other_tags=len(left_out) + reading.other_tags,
        other_waiting=sum(one.waiting for one in left_out) + reading.other_waiting,
        other_running=sum(one.running for one in left_out) + reading.other_running,
        has_lines=lines is not None,
    )


def _row(one: TagReading, read_at: float, line: Sparkline | None) -> TagRow:
    delay = None if one.head_since is None else max(0.0, read_at - one.head_since)
    return TagRow(one.tag, one.waiting, delay, one.running, one.workers, line)


def _calm_order(row: TagRow) -> tuple[bool, int, str]:
    magnitude = len(str(row.waiting)) if row.waiting else 0
    return (not row.unattended, -magnitude, row.tag)
