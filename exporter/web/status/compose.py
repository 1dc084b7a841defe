"""Pure: a snapshot, what is wrong and what is known of the past, as the values of the page."""

from __future__ import annotations

from collections.abc import Mapping

from exporter.fairness.audit import CAPPED
from exporter.fairness.values import FairnessMode
from exporter.metrics.collect import Scope
from exporter.metrics.freshness import freshness
from exporter.snapshot import Snapshot
from exporter.web.status.past import Past
from exporter.web.status.sentence import edition_note, headline, remarks
from exporter.web.status.shares import shares
from exporter.web.status.tags import shown_tags, tags
from exporter.web.status.troubles import collector_rows, troubles
from exporter.web.status.values import Clocks, Moment, Page, Transition
from exporter.web.status.wording import duration

MAX_TAGS = 50
MAX_WORKSPACES = 20
MAX_TRANSITIONS = 10


def compose(snapshot: Snapshot, scope: Scope, conditions: Mapping[str, str], past: Past, clocks: Clocks) -> Page:
    """The page at `clocks`. `conditions` are the service's present problems by key."""
    fresh = freshness(snapshot, scope.fairness_mode, clocks.monotonic)
    fairness = snapshot.fairness if fresh.fairness else None
    queue = snapshot.queue if fresh.queue else None
    usage = snapshot.fairness if fresh.usage else None
    reading = None if queue is None else queue.reading
    return Page(
        at=clocks.epoch,
        state=fresh.state,
        mode=scope.fairness_mode,
        headline=headline(snapshot, fresh, clocks),
        remarks=remarks(snapshot, fresh),
        shares=None if usage is None else shares(usage, reading, clocks, min(scope.max_workspaces, MAX_WORKSPACES)),
        without_shares=_without_shares(snapshot, scope, clocks),
        edition_note=edition_note(fairness),
        tags=None if queue is None else tags(queue, past.lines, clocks, tag_limit(scope)),
        without_tags=_without_tags(snapshot, clocks),
        transitions=_transitions(past, snapshot, clocks),
        collectors=collector_rows(snapshot, fresh, clocks),
        troubles=troubles(snapshot, fresh, conditions, past.troubles),
    )


def tag_limit(scope: Scope) -> int:
    """How many tags have a row."""
    return min(scope.max_tags, MAX_TAGS)


def wanted_of_past(snapshot: Snapshot, scope: Scope, clocks: Clocks) -> tuple[frozenset[str], int]:
    """The tags whose lines the page shows, and the database's time in epoch milliseconds."""
    wanted = frozenset[str]() if snapshot.queue is None else shown_tags(snapshot.queue.reading, tag_limit(scope))
    return wanted, round(_database_time(snapshot, clocks) * 1000)


def _database_time(snapshot: Snapshot, clocks: Clocks) -> float:
    """The database's time by the newest look at it; before the first one, this host's."""
    seen = [(part.observed_monotonic, part.now) for part in (snapshot.fairness, snapshot.queue) if part is not None]
    if not seen:
        return clocks.epoch
    observed, now = max(seen)
    return now + clocks.monotonic - observed


def _transitions(past: Past, snapshot: Snapshot, clocks: Clocks) -> tuple[Transition, ...] | None:
    if past.events is None:
        return None
    now = _database_time(snapshot, clocks)
    newest = past.events[:MAX_TRANSITIONS]
    return tuple(Transition(Moment(one.at, now - one.at), one.workspace, one.operation == CAPPED) for one in newest)


def _without_shares(snapshot: Snapshot, scope: Scope, clocks: Clocks) -> str:
    if scope.fairness_mode is FairnessMode.OFF:
        return "Not read: fairness.mode is off."
    reading = None if snapshot.fairness is None else snapshot.fairness.reading
    return _not_shown(snapshot, "fairness", None if reading is None else reading.read_at, clocks)


def _without_tags(snapshot: Snapshot, clocks: Clocks) -> str:
    if snapshot.collector("queue") is None:
        return "Not read: queue.mode is off."
    return _not_shown(snapshot, "queue", None if snapshot.queue is None else snapshot.queue.reading.read_at, clocks)


def _not_shown(snapshot: Snapshot, collector: str, read_at: float | None, clocks: Clocks) -> str:
    if read_at is not None:
        age = duration(_database_time(snapshot, clocks) - read_at)
        return f"Not shown: the last reading is {age} old, too old to speak of the present."
    status = snapshot.collector(collector)
    return "Not readable: see below what is wrong." if status and status.problem else "Not read yet."
