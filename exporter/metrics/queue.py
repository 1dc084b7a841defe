"""Pure: a queue reading as families. Waits are as of the reading: the same on every replica until the next one."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from exporter.metrics import families
from exporter.metrics.choose import choose
from exporter.metrics.labelled import chosen_of, single
from exporter.metrics.values import Metric
from exporter.queue.values import QueueReading


def choose_tags(previous: AbstractSet[str], reading: QueueReading, limit: int) -> frozenset[str]:
    """The tags to export: those with backlog first, by waiting jobs; then those with running jobs; then drained."""
    backlog = {tag.tag for tag in reading.tags if tag.waiting}
    sizes: dict[str, float] = dict.fromkeys(reading.drained, 0.0)
    sizes |= {tag.tag: tag.waiting or tag.running for tag in reading.tags}
    return choose(previous, sizes, backlog, limit)


def choose_waiting_workspaces(previous: AbstractSet[str], reading: QueueReading, limit: int) -> frozenset[str]:
    """The workspaces whose waits are exported: those with most waiting jobs."""
    return choose(previous, {one.workspace: one.waiting for one in reading.workspaces}, frozenset(), limit)


def tag_metrics(reading: QueueReading, chosen: AbstractSet[str]) -> Iterator[Metric]:
    """Families by tag. A drained tag is 0; who serves it was not read, and it has no head."""
    tags = reading.tags
    read = {tag.tag for tag in tags}
    zeros = [(tag, 0.0) for tag in reading.drained if tag not in read]
    heads = [(tag.tag, tag.head_since) for tag in tags]
    delays = [(tag, 0.0 if since is None else max(0.0, reading.read_at - since)) for tag, since in heads]
    more = reading.other_tags
    yield chosen_of(families.WAITING, [*((tag.tag, tag.waiting) for tag in tags), *zeros], chosen, more)
    yield chosen_of(families.DELAY, [*delays, *zeros], chosen, more)
    yield chosen_of(families.HEAD_SINCE, ((tag, since) for tag, since in heads if since is not None), chosen)
    yield chosen_of(families.RUNNING, [*((tag.tag, tag.running) for tag in tags), *zeros], chosen, more)
    yield chosen_of(families.WORKERS, ((tag.tag, tag.workers) for tag in tags), chosen, more)
    left_out = sum(tag.waiting for tag in tags if tag.tag not in chosen)
    yield single(families.OTHER_WAITING, left_out + reading.other_waiting)


def waiting_metrics(reading: QueueReading, chosen: AbstractSet[str]) -> Iterator[Metric]:
    """Families by workspace."""
    waiting = ((one.workspace, one.waiting) for one in reading.workspaces)
    waits = ((one.workspace, max(0.0, reading.read_at - one.waiting_since)) for one in reading.workspaces)
    yield chosen_of(families.WORKSPACE_WAITING, waiting, chosen, reading.other_workspaces)
    yield chosen_of(families.WORKSPACE_WAIT, waits, chosen, reading.other_workspaces)
