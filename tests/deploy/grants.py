"""What `deploy/sql` grants, read back from the catalogs, and the product's own statements run under it."""

from __future__ import annotations

from dataclasses import dataclass

from exporter.conditions import Conditions
from exporter.config import Config, FairnessConfig, QueueConfig
from exporter.database.database import Connection
from exporter.database.url import parse_url
from exporter.errors import DatabaseError
from exporter.fairness import store
from exporter.fairness.refresh import Refresher
from exporter.fairness.values import FairnessMode
from exporter.queue.retention import Retention
from exporter.queue.sampler import Sampler
from exporter.queue.values import QueueMode
from tests.database.targets import Clock, open_database
from tests.fairness.scene import add_completed
from tests.queue.scene import Job, add_jobs
from tests.roles import ENFORCE_ROLE, OBSERVE_ROLE, SETTINGS_VIEW

OBSERVING = Config(fairness=FairnessConfig(settings_relation=SETTINGS_VIEW))
WRITING = Config(
    fairness=FairnessConfig(mode=FairnessMode.ENFORCE, settings_relation=SETTINGS_VIEW),
    queue=QueueConfig(mode=QueueMode.SAMPLE),
)
CONFIGS = {OBSERVE_ROLE: OBSERVING, ENFORCE_ROLE: WRITING}

GRANTS = """
SELECT CASE WHEN class.relkind = 'S' THEN 'SEQUENCE ' ELSE '' END || class.relname AS relation,
       entry.column_name, entry.privilege_type AS privilege, grantee.rolname::text AS role
  FROM pg_class AS class
  JOIN (SELECT oid AS relation, NULL AS column_name, (aclexplode(relacl)).* FROM pg_class
         UNION ALL
        SELECT attrelid, attname::text, (aclexplode(attacl)).* FROM pg_attribute) AS entry
    ON entry.relation = class.oid
  JOIN pg_roles AS grantee ON grantee.oid = entry.grantee
 WHERE class.relnamespace = 'public'::regnamespace AND grantee.rolname LIKE 'windmill\\_exporter\\_%'
 ORDER BY 1, 2, 3
"""
POLICIES = """
SELECT policyname::text AS policy, tablename::text AS relation, roles[1]::text AS role
  FROM pg_policies WHERE policyname LIKE 'windmill\\_exporter\\_%' ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Right:
    """One privilege on one column or relation, or one policy, as somebody might take it away."""

    role: str
    relation: str
    revoke: str
    column: str | None = None

    @property
    def table(self) -> str:
        return self.relation.removeprefix("SEQUENCE ")


async def granted_rights(connection: Connection) -> list[Right]:
    """Every single right that both roles have in this database by grants of their own."""
    rights = []
    for row in await connection.fetch(GRANTS):
        columns = f' ("{row["column_name"]}")' if row["column_name"] else ""
        revoke = f"REVOKE {row['privilege']}{columns} ON {row['relation']} FROM {row['role']}"
        rights.append(Right(row["role"], row["relation"], revoke, row["column_name"]))
    policies = await connection.fetch(POLICIES)
    return rights + [Right(row["role"], row["relation"], f"DROP POLICY {row[0]} ON {row[1]}") for row in policies]


async def lay_out(connection: Connection) -> None:
    """A cluster in which every statement of the product has something to do: a cap, a backlog, an expired sample."""
    await connection.execute(
        "INSERT INTO global_settings VALUES ('workspace_fairness_enabled', 'true'), "
        "('workspace_fairness_duration_secs', '3600')"
    )
    await add_completed(connection, "noisy", duration_ms=34_000, completed_ago=5)
    await add_completed(connection, "quiet", duration_ms=1_000)
    await add_jobs(connection, Job(tag="gpu", due=100))


async def start_over(connection: Connection) -> None:
    """Let every replica find its cycle due, its sample new and its transition unwritten."""
    await connection.execute(
        "DELETE FROM background_task_state; DELETE FROM metrics;"
        "INSERT INTO metrics VALUES ('queue_count_old', '1', now() - interval '30 days')"
    )


async def nothing_checked() -> None:
    """Let the statements themselves meet what is missing."""


async def run_statements(url: str, config: Config) -> str | None:
    """One turn of every collector without the capability check; what the server refused, or None."""
    database = open_database(parse_url(url))
    clock = Clock()
    refresher = Refresher(
        database,
        config.fairness,
        replica="one",
        conditions=Conditions(),
        require=nothing_checked,
        require_audit=nothing_checked,
        monotonic=clock,
    )
    try:
        outcome = await refresher.tick()
        if outcome.audit_failures:
            return "an audit row is owed"
        await store.capped_since(database, frozenset({"noisy"}))
        await Sampler(database, config.queue, "one", clock).tick()
        await Retention(database, config.queue).tick()
    except DatabaseError as error:
        return str(error)
    finally:
        database.close()
    return None
