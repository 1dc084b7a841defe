"""Our state rows as one replica sees them, and whether a cycle is due. Ages are the database's, in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from exporter.database import state_rows
from exporter.database.database import Database, Transaction
from exporter.database.statement import Statement

QUEUE_ROW: Final = "windmill_exporter_queue"
RETENTION_ROW: Final = "windmill_exporter_retention"
EMPTY_VALUE: Final = '{"version":1}'

# A replica that ticks every 10 s finds its own claim 9.99 s old now and then; without slack it would skip that cycle. A
# tenth of the interval is far more than timers and claims drift, and still keeps it one claim a cycle.
SLACK_RATIO: Final = 0.1
MAX_SLACK_SECONDS: Final = 1.0

# A reading of 10,000 tags of 255 characters (`queue.max_stored_tags`) still fits.
MAX_VALUE_BYTES: Final = 16_777_216

# One row, also when ours is missing. clock_timestamp(): another replica's claim may carry a now() later than ours. An
# infinite updated_at has no age and counts as due.
STATE = Statement(
    "state",
    """
    SELECT date_part('epoch', now()) AS now,
           state.name IS NOT NULL AS present,
           {value} AS value,
           CASE WHEN isfinite(state.updated_at)
                THEN date_part('epoch', clock_timestamp() - state.updated_at) END AS age_seconds
      FROM (SELECT) AS always
      LEFT JOIN {schema}.background_task_state AS state ON state.name = $1
    """,
).with_text("value", state_rows.value_text(MAX_VALUE_BYTES))


@dataclass(frozen=True, slots=True)
class StateSeen:
    """One state row at `now` (database epoch seconds): is it there, its JSON text, and how long ago it was claimed."""

    now: float
    present: bool
    value: str | None
    age_seconds: float | None


def guard_seconds(interval_seconds: float) -> float:
    """The age from which a claim is due again: the interval less the slack."""
    return interval_seconds - slack_seconds(interval_seconds)


def slack_seconds(interval_seconds: float) -> float:
    """How much earlier than its interval a cycle may come: a tenth of it, at most 1 s."""
    return min(interval_seconds * SLACK_RATIO, MAX_SLACK_SECONDS)


def is_due(seen: StateSeen, interval_seconds: float) -> bool:
    """Whether to claim. A claim of the future is a wrong clock's, and due."""
    age = seen.age_seconds
    return age is None or not 0 <= age < guard_seconds(interval_seconds)


async def see_state(transaction: Transaction, name: str) -> StateSeen:
    """Read one state row."""
    [row] = await transaction.fetch(STATE, name)
    return StateSeen(row["now"], row["present"], row["value"], row["age_seconds"])


async def claim_cycle(
    database: Database, purpose: str, name: str, seen: StateSeen, interval_seconds: float
) -> datetime | None:
    """Claim the cycle that `is_due` found due. The fence to write under, or None when another replica was faster."""
    return await state_rows.claim(
        database,
        purpose,
        name,
        min_age_seconds=guard_seconds(interval_seconds),
        initial=EMPTY_VALUE,
        missing=not seen.present,
    )
