"""The backlog statement against other ways to find the head of every tag, in one run: `python -m benchmarks.backlog`.

20,000 and 200,000 queued jobs (a fifth of them running) on 50 tags and 300 rare ones, 100 workspaces, 50,000 dead
workers. The rivals answer less: no running jobs, no workspaces and no workers. Trust the ratios.
"""

from __future__ import annotations

import asyncio
import statistics
import time

import asyncpg

from exporter.database.database import Connection
from exporter.database.statement import Statement
from exporter.demo.postgres import EmbeddedPostgres
from exporter.queue.statements import BACKLOG, READ_PLANNER
from tests.sources import WINDMILL_SCHEMA

ROUNDS = 15

TAGS_ONLY = Statement(
    "tags only",
    """
    SELECT tag, sum(waiting), (array_agg(head ORDER BY priority DESC NULLS LAST))[1]
      FROM (SELECT tag, priority, count(*) AS waiting, min(scheduled_for) AS head
              FROM {schema}.v2_job_queue
             WHERE NOT running AND scheduled_for <= now() - interval '3 seconds'
             GROUP BY tag, priority) AS counted
     GROUP BY tag
    """,
)
LATERAL_HEAD = Statement(
    "a lateral head per tag",
    """
    SELECT counted.tag, counted.waiting, head.scheduled_for
      FROM (SELECT tag, count(*) AS waiting
              FROM {schema}.v2_job_queue
             WHERE NOT running AND scheduled_for <= now() - interval '3 seconds'
             GROUP BY tag) AS counted
     CROSS JOIN LATERAL (
            SELECT scheduled_for
              FROM {schema}.v2_job_queue AS queue
             WHERE queue.tag = counted.tag AND NOT running AND scheduled_for <= now() - interval '3 seconds'
             ORDER BY priority DESC NULLS LAST, scheduled_for
             LIMIT 1) AS head
    """,
)
WINDOW_FUNCTIONS = Statement(
    "window functions",
    """
    SELECT tag, waiting, scheduled_for
      FROM (SELECT tag, scheduled_for, count(*) OVER (PARTITION BY tag) AS waiting,
                   row_number() OVER (PARTITION BY tag ORDER BY priority DESC NULLS LAST, scheduled_for) AS place
              FROM {schema}.v2_job_queue
             WHERE NOT running AND scheduled_for <= now() - interval '3 seconds') AS ranked
     WHERE place = 1
    """,
)
RIVALS = (TAGS_ONLY, LATERAL_HEAD, WINDOW_FUNCTIONS)


async def fill(connection: Connection, queued: int) -> None:
    await connection.execute("TRUNCATE v2_job_queue CASCADE")
    await connection.execute(
        """
        INSERT INTO v2_job_queue (id, workspace_id, scheduled_for, running, tag, priority)
        SELECT gen_random_uuid(), 'workspace ' || n % 100, now() - random() * interval '1 hour', n % 5 = 0,
               CASE WHEN n <= 300 THEN 'rare ' || n ELSE 'tag ' || n % 50 END,
               CASE WHEN n > 300 AND n % 10 = 0 THEN n % 4 END
          FROM generate_series(1, $1::int) AS n
        """,
        queued,
    )
    await connection.execute("VACUUM ANALYZE v2_job_queue")


async def median_ms(connection: Connection, statement: Statement) -> float:
    text = statement.render({"schema": "public"})
    seconds = []
    for _ in range(ROUNDS):
        async with connection.transaction(readonly=True):
            for name, value in READ_PLANNER.items():
                await connection.execute("SELECT set_config($1, $2, true)", name, value)
            begin = time.perf_counter()
            await connection.fetch(text)
            seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds) * 1000


async def compare(url: str) -> None:
    connection = await asyncpg.connect(url, statement_cache_size=0)
    await connection.execute(WINDMILL_SCHEMA.read_text())
    await connection.execute(
        "INSERT INTO worker_ping (worker, worker_instance, ping_at, custom_tags)"
        " SELECT 'dead ' || n, 'host', now() - interval '1 hour', '{tag 1}' FROM generate_series(1, 50000) AS n;"
        "INSERT INTO worker_ping (worker, worker_instance, custom_tags)"
        " SELECT 'live ' || n, 'host', '{tag 1,tag 2,tag 3}' FROM generate_series(1, 40) AS n; ANALYZE worker_ping"
    )
    for queued in (20_000, 200_000):
        await fill(connection, queued)
        ours = await median_ms(connection, BACKLOG)
        print(f"{queued:>7,} queued: ours (tags, running, workers, workspaces) {ours:8.1f} ms")
        for rival in RIVALS:
            theirs = await median_ms(connection, rival)
            print(f"{'':16}{rival.name:<42} {theirs:8.1f} ms, {theirs / ours:5.2f} times ours")
    await connection.close()


if __name__ == "__main__":
    with EmbeddedPostgres() as server:
        asyncio.run(compare(server.url()))
