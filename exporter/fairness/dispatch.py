"""How a worker takes its next job: the standard pull, the fairness pull, and when which of them runs. A library.

For dispatchers of your own. One pull is

    dispatcher = Dispatcher(schema="public")
    draw = random.randrange(10_000)
    job = await dispatcher.pull(connection, [["deno", "python3"]], payload, payload_age_seconds, draw)

- `connection` is an asyncpg connection whose role may update `v2_job_queue` and `v2_job_runtime`. Isolation must be
  READ COMMITTED (the default): above it a row that another worker has just taken is a serialization failure instead
  of a row to be skipped.
- `payload` is the stored decision (row `workspace_fairness` of `background_task_state`, parsed by `payload.py`) and
  `payload_age_seconds` how old it is by the database's clock. Read it every 2 s or so, not for each pull. None as the
  age says that there never was one: nobody is held back.
- `draw` is uniform in 0..9999. Draw once for each pull and never reuse one.

Choosing, locking and marking are one statement. On its own it is its own transaction: when `pull` returns a job it is
committed as running, and no other worker sees it again. Inside a transaction of yours the job is locked until you
commit (others skip it meanwhile) and waits again when you roll back; do not keep that transaction open while the job
runs. From then on ping `v2_job_runtime` often: worker time is only credited up to a job's last ping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from exporter.database.database import Connection
from exporter.database.statement import Statement
from exporter.fairness.admission import admission_of
from exporter.fairness.values import Admission, Payload

# The standard pull leaves nobody out ($2 is empty), the fairness pull the capped workspaces.
# The order is that of the index queue_sort_v2, so candidates are read from its beginning and nothing is sorted.
# SKIP LOCKED lets pullers pass each other's candidates instead of queueing behind them.
# started_at stays where it is set: a job that was suspended and goes on began then. It holds a worker from now on, so
# suspend_until goes.
PULL = Statement(
    "pull",
    """
    WITH candidate AS (
        SELECT queue.id
          FROM {schema}.v2_job_queue AS queue
         WHERE queue.running = false
           AND queue.tag = ANY ($1::text[])
           AND queue.scheduled_for <= now()
           AND queue.workspace_id <> ALL ($2::text[])
         ORDER BY queue.priority DESC NULLS LAST, queue.scheduled_for
           FOR UPDATE SKIP LOCKED
         LIMIT 1
    ),
    pulled AS (
        UPDATE {schema}.v2_job_queue AS queue
           SET running = true,
               started_at = coalesce(queue.started_at, now()),
               suspend_until = NULL
          FROM candidate
         WHERE queue.id = candidate.id
        RETURNING queue.id, queue.workspace_id, queue.tag, queue.scheduled_for, queue.started_at
    ),
    pinged AS (
        UPDATE {schema}.v2_job_runtime AS runtime
           SET ping = now()
          FROM pulled
         WHERE runtime.id = pulled.id
    )
    SELECT pulled.id, pulled.workspace_id, pulled.tag, pulled.scheduled_for, pulled.started_at
      FROM pulled
    """,
)
NOBODY: tuple[str, ...] = ()


class Pull(StrEnum):
    """Which of the two statements a pull runs first."""

    STANDARD = "standard"
    FAIRNESS = "fairness"


@dataclass(frozen=True, slots=True)
class PulledJob:
    """A job that this pull has marked as running. Times are the database's."""

    id: UUID
    workspace: str
    tag: str
    scheduled_for: datetime
    started_at: datetime


def choose_pull(payload: Payload, payload_age_seconds: float | None, draw: int) -> Pull:
    """Which pull one draw (uniform in 0..9999) leads to.

    The fairness pull only while somebody is capped by a decision of at most 60 s and the draw does not admit them.
    """
    excluded = admission_of(payload, payload_age_seconds, draw) is Admission.EXCLUDED
    return Pull.FAIRNESS if excluded else Pull.STANDARD


class Dispatcher:
    """The two pulls against the tables of one schema."""

    def __init__(self, schema: str = "public") -> None:
        self._statement = PULL.render({"schema": schema})

    async def pull(
        self,
        connection: Connection,
        tag_levels: Sequence[Sequence[str]],
        payload: Payload,
        payload_age_seconds: float | None,
        draw: int,
    ) -> PulledJob | None:
        """Take the next job for a worker, or None when nothing waits for its tags.

        `tag_levels` are the worker's tags by falling priority; mostly there is one level. The fairness pull is tried
        over all levels before the standard one, so a worker never idles while only capped work waits.
        Raises what asyncpg raises.
        """
        if choose_pull(payload, payload_age_seconds, draw) is Pull.FAIRNESS:
            job = await self._first(connection, tag_levels, payload.overloaded)
            if job is not None:
                return job
        return await self._first(connection, tag_levels, NOBODY)

    async def _first(
        self, connection: Connection, tag_levels: Sequence[Sequence[str]], left_out: Sequence[str]
    ) -> PulledJob | None:
        for tags in tag_levels:
            row = await connection.fetchrow(self._statement, tags, left_out)
            if row is not None:
                return PulledJob(row["id"], row["workspace_id"], row["tag"], row["scheduled_for"], row["started_at"])
        return None
