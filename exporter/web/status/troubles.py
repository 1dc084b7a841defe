"""Pure: how each collector does, and everything that is wrong, in words and with what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from exporter.metrics.freshness import Freshness
from exporter.snapshot import CollectorStatus, Snapshot
from exporter.web.status.advice import BY_CONDITION, BY_REASON
from exporter.web.status.values import Clocks, CollectorRow, Health, Moment, Trouble

PURPOSES: Mapping[str, str] = {
    "fairness": "who holds the workers, and who is capped",
    "queue": "what waits, by tag and workspace",
    "retention": "deletes expired samples",
}


def collector_rows(snapshot: Snapshot, fresh: Freshness, clocks: Clocks) -> tuple[CollectorRow, ...]:
    """One row for each collector, in their order."""
    return tuple(
        CollectorRow(status.name, PURPOSES.get(status.name, ""), health(status, fresh), _last_success(status, clocks))
        for status in snapshot.collectors
    )


def health(status: CollectorStatus, fresh: Freshness) -> Health:
    """One word for a collector. A reading can be stale although the last turn succeeded: somebody else's is used."""
    if not status.success:
        return Health.FAILING if status.problem is not None else Health.STARTING
    is_fresh = {"fairness": fresh.fairness, "queue": fresh.queue}.get(status.name, True)
    return Health.WORKING if is_fresh else Health.STALE


def troubles(
    snapshot: Snapshot, fresh: Freshness, conditions: Mapping[str, str], unread: Sequence[Trouble]
) -> tuple[Trouble, ...]:
    """What is wrong now. `conditions` are the service's; `unread` is what the page itself could not read.

    Collectors with one and the same problem share an entry. While the database is away, that is the whole story.
    """
    found: dict[str, Trouble] = {}
    for trouble in (*_of_collectors(snapshot, fresh), *_of_conditions(snapshot, conditions)):
        known = found.get(trouble.sentence)
        concerns = (*known.concerns, *trouble.concerns) if known else trouble.concerns
        found[trouble.sentence] = Trouble(concerns, trouble.sentence, trouble.advice)
    return (*found.values(), *(unread if snapshot.database_up else ()))


def _of_collectors(snapshot: Snapshot, fresh: Freshness) -> Iterator[Trouble]:
    for status in snapshot.collectors:
        state = health(status, fresh)
        if state is Health.FAILING and status.problem is not None:
            yield Trouble((status.name,), status.problem, BY_REASON.get(status.reason or "", ""))
        elif state is Health.STALE:
            sentence = f"The last reading of {status.name} is too old to be shown."
            yield Trouble((status.name,), sentence, "If this stays, the log of the exporter says more.")


def _of_conditions(snapshot: Snapshot, conditions: Mapping[str, str]) -> Iterator[Trouble]:
    collectors = {status.name for status in snapshot.collectors}
    for key, sentence in conditions.items():
        if key not in collectors:
            yield Trouble((key.replace("_", " "),), sentence, BY_CONDITION.get(key, ""))


def _last_success(status: CollectorStatus, clocks: Clocks) -> Moment | None:
    at = status.last_success_epoch
    return None if at is None else Moment(at, clocks.epoch - at)
