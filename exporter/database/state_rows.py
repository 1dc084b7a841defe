"""Rows of Windmill's table `background_task_state`: the claim that elects one replica a cycle, and the fenced write.

A claim moves `updated_at` in a transaction of its own and commits; the value is written later, in another one, and
only where `updated_at` still is what the claim returned. A replica that was slow or paused therefore never overwrites
a later cycle.
"""

from __future__ import annotations

from datetime import datetime

from exporter.database.database import Database, Transaction
from exporter.database.statement import Statement

MAX_VALUE_BYTES = 1_048_576


def value_text(max_bytes: int) -> str:
    """SQL for the value of a row named `state` as text; NULL when it is longer, which nobody writes on purpose.

    The stored size is looked at first: a value that is large even as stored is not read at all. It says little alone,
    since a megabyte of compressed repetitions may unfold to a hundred.
    """
    return (
        f"CASE WHEN pg_column_size(state.value) <= {max_bytes} AND octet_length(state.value::text) <= {max_bytes} "
        "THEN state.value::text END"
    )


# clock_timestamp() on the future test: another replica's claim may carry a now() later than ours while we waited for
# its row lock, and must count as fresh; only a stamp that lies ahead of the clock itself is wrong and counts as stale.
CLAIM = Statement(
    "claim",
    """
    UPDATE {schema}.background_task_state
       SET updated_at = now()
     WHERE name = $1
       AND (updated_at <= now() - make_interval(secs => $2) OR updated_at > clock_timestamp())
    RETURNING updated_at
    """,
)

# Only where the row is missing: an upsert on every claim would lock, take a transaction id and write WAL even for a
# loser.
INSERT_MISSING = Statement(
    "insert_missing",
    """
    INSERT INTO {schema}.background_task_state (name, value, updated_at)
    VALUES ($1, $2::text::jsonb, 'epoch')
    ON CONFLICT (name) DO NOTHING
    """,
)

HOLD = Statement(
    "hold",
    """
    SELECT {value} AS value
      FROM {schema}.background_task_state AS state
     WHERE state.name = $1 AND state.updated_at = $2
       FOR UPDATE
    """,
).with_text("value", value_text(MAX_VALUE_BYTES))

WRITE_VALUE = Statement(
    "write_value",
    """
    UPDATE {schema}.background_task_state
       SET value = $2::text::jsonb
     WHERE name = $1
    """,
)


async def claim(
    database: Database, purpose: str, name: str, *, min_age_seconds: float, initial: str, missing: bool
) -> datetime | None:
    """Try to become the one replica of this cycle. The fence to write under, or None when another one was faster.

    `missing` says that the row was not there when last read; it is then inserted as `initial` first.
    """
    async with database.transaction(purpose, read_only=False) as transaction:
        if missing:
            await transaction.execute(INSERT_MISSING, name, initial)
        rows = await transaction.fetch(CLAIM, name, min_age_seconds)
    return rows[0]["updated_at"] if rows else None


async def hold(transaction: Transaction, name: str, fence: datetime) -> str | None:
    """Lock the row for the rest of the transaction; its stored value, or None when the fence no longer stands.

    A value that is too long to be read is the empty text, which no reader takes for anything.
    """
    rows = await transaction.fetch(HOLD, name, fence)
    return (rows[0]["value"] or "") if rows else None


async def write_value(transaction: Transaction, name: str, value: str) -> None:
    """Replace the value of a row that `hold` locked."""
    await transaction.execute(WRITE_VALUE, name, value)
