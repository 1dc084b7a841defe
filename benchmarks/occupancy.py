"""The aggregation at 500,000 and 5,000,000 completed jobs, against the form that one would write first.

`python -m benchmarks.occupancy`. Both sizes end in the same traffic (100 completions a second), beside 2,000 live,
20,000 queued and 20,000 stuck jobs. Timed with and without statistics, the fenced form under a generic plan
too. Trust the ratios: a form that reads by index only is as fast at ten times the history.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping

import asyncpg

from exporter.database.database import Connection
from exporter.database.statement import Statement
from exporter.demo.postgres import EmbeddedPostgres
from tests.fairness.rows import TABLES, lay_out_history
from tests.sources import WINDMILL_SCHEMA

SIZES = (500_000, 5_000_000)
LIVE, QUEUED, STUCK = 2_000, 20_000, 20_000
WINDOW_SECONDS = 10
ROUNDS = 11
SLOW_ROUNDS = 3
ALLOWED_RATIO = 1.3
ORCHESTRATION = "('flow', 'flowpreview', 'flownode', 'singlestepflow', 'singlescriptflow')"

FENCED = Statement.load("exporter.fairness", "occupancy.sql")

# Plain joins, the window's start in a CTE for readability. Same figures, no fence.
NAIVE = Statement(
    "naive",
    f"""
    WITH bounds AS MATERIALIZED (
        SELECT now() - make_interval(secs => $1::int) AS window_start, now() - interval '60 seconds' AS sample_start
    ),
    running AS (
        SELECT queue.workspace_id,
               least(now(), runtime.ping) - greatest(queue.started_at, bounds.window_start) AS held
          FROM {{schema}}.v2_job_queue AS queue
          JOIN {{schema}}.v2_job AS job USING (id)
          JOIN {{schema}}.v2_job_runtime AS runtime USING (id)
         CROSS JOIN bounds
         WHERE queue.running AND queue.started_at IS NOT NULL AND queue.suspend_until IS NULL
           AND runtime.ping > now() - interval '60 seconds'
           AND job.kind::text NOT IN {ORCHESTRATION}
    ),
    completed AS (
        SELECT completed.workspace_id, completed.duration_ms,
               completed.completed_at - greatest(completed.started_at, bounds.window_start) AS held
          FROM {{schema}}.v2_job_completed AS completed
          JOIN {{schema}}.v2_job AS job USING (id)
         CROSS JOIN bounds
         WHERE completed.completed_at > least(bounds.window_start, bounds.sample_start)
           AND job.kind::text NOT IN {ORCHESTRATION}
    )
    SELECT workspace_id, sum(greatest(date_part('epoch', held), 0)), count(duration_ms), sum(duration_ms)
      FROM (SELECT workspace_id, held, NULL::bigint AS duration_ms FROM running
             UNION ALL
            SELECT workspace_id, held, duration_ms FROM completed) AS jobs
     GROUP BY workspace_id
    """,
)

CASES: tuple[tuple[str, Statement, bool, str], ...] = (
    ("fenced", FENCED, True, "force_custom_plan"),
    ("fenced, generic plan", FENCED, True, "force_generic_plan"),
    ("fenced, no statistics", FENCED, False, "force_custom_plan"),
    ("naive", NAIVE, True, "force_custom_plan"),
    ("naive, no statistics", NAIVE, False, "force_custom_plan"),
)


async def median_ms(connection: Connection, statement: Statement, plans: str, rounds: int) -> float:
    """Milliseconds of one execution, warm."""
    await connection.execute(f"SET plan_cache_mode = {plans}")
    prepared = await connection.prepare(statement.render({"schema": "public"}))
    times = []
    for number in range(rounds + 1):
        begun = time.perf_counter()
        assert await prepared.fetch(WINDOW_SECONDS)
        if number:
            times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


async def forget_statistics(connection: Connection) -> None:
    """As after a restore: the planner knows the size of the tables and nothing of what is in them."""
    await connection.execute("DELETE FROM pg_statistic WHERE starelid = ANY ($1::text[]::regclass[])", list(TABLES))
    await connection.execute(
        "UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE oid = ANY ($1::text[]::regclass[])", list(TABLES)
    )


async def measure(url: str, completed: int) -> Mapping[str, float]:
    connection = await asyncpg.connect(url, statement_cache_size=0)
    await connection.execute(WINDMILL_SCHEMA.read_text())
    begun = time.perf_counter()
    await lay_out_history(connection, completed=completed, live=LIVE, queued=QUEUED, stuck=STUCK)
    await connection.execute("VACUUM ANALYZE")
    print(f"{completed:,} completed jobs laid out in {time.perf_counter() - begun:.0f} s", flush=True)
    times = {}
    # Cases with statistics come first: they are gone afterwards.
    for name, statement, analyzed, plans in sorted(CASES, key=lambda case: not case[2]):
        if not analyzed:
            await forget_statistics(connection)
        times[name] = await median_ms(connection, statement, plans, ROUNDS if statement is FENCED else SLOW_ROUNDS)
    await connection.close()
    return times


async def main() -> None:
    columns = []
    for size in SIZES:
        # A server each: what one size left in the buffers must not serve the other.
        with EmbeddedPostgres(options={"shared_buffers": "1GB", "maintenance_work_mem": "256MB"}) as server:
            columns.append(await measure(server.url(), size))
    small, large = columns
    print(f"\n{'':24}{SIZES[0]:>12,}{SIZES[1]:>12,}   ratio")
    for name in small:
        print(f"{name:24}{small[name]:>9.1f} ms{large[name]:>9.1f} ms{large[name] / small[name]:>8.2f}")
    ratio = large["fenced"] / small["fenced"]
    verdict = "holds" if ratio <= ALLOWED_RATIO else "IS BROKEN"
    print(f"\nat most {ALLOWED_RATIO} times slower with ten times the history: {ratio:.2f}, {verdict}")
    print(f"the naive form takes {large['naive'] / large['fenced']:.0f} times as long at {SIZES[1]:,}")


if __name__ == "__main__":
    asyncio.run(main())
