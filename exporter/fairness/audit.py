"""Transitions into and out of the capped set, as rows of Windmill's audit log: exactly one each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from exporter.database.database import Transaction
from exporter.database.statement import Statement
from exporter.errors import DatabaseError
from exporter.fairness.values import FairnessSettings, OwedAudit

CAPPED = "workspace_fairness.capped"
UNCAPPED = "workspace_fairness.uncapped"
NO_PARTITION = "23514"

# One statement for all rows. $4 holds the time of each transition, which a late row keeps; $5 takes the present
# instead, for days whose partition is gone or was never made. Names and times may come from a stranger's payload or
# reading: what the columns cannot hold is cut, since one row that always fails would keep all others owed for ever.
INSERT_AUDIT = Statement(
    "insert_audit",
    """
    INSERT INTO {schema}.audit_partitioned
           (workspace_id, "timestamp", username, operation, action_kind, resource, parameters, email)
    SELECT 'admins',
           CASE WHEN $5 OR late.at NOT BETWEEN 0 AND 253402300799 THEN now() ELSE to_timestamp(late.at) END,
           'system', late.operation, 'update', left(late.resource, 255), late.parameters::jsonb, 'system@windmill.dev'
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]::float8[])
           AS late (operation, resource, parameters, at)
    """,
)

# The newest 1,000 caps are enough to find those still in force, and bound the cost whatever the audit log's size.
CAPPED_SINCE = Statement(
    "capped_since",
    """
    SELECT latest.resource AS workspace, date_part('epoch', max(latest."timestamp")) AS since
      FROM (SELECT audit.resource, audit."timestamp"
              FROM {schema}.audit_partitioned AS audit
             WHERE audit.workspace_id = 'admins'
               AND audit.operation = 'workspace_fairness.capped'
             ORDER BY audit.id DESC
             LIMIT 1000) AS latest
     WHERE latest.resource = ANY ($1::text[])
     GROUP BY latest.resource
    """,
)


def transition_rows(
    entered: Sequence[str], left: Sequence[str], *, at: float, settings: FairnessSettings, total_capped: int
) -> tuple[OwedAudit, ...]:
    """The audit rows of one cycle's transitions, in Windmill's own form (all parameters are strings)."""
    parameters = MappingProxyType(
        {
            "max_percent": str(settings.max_percent),
            "window_secs": str(settings.window_seconds),
            "total_overloaded": str(total_capped),
        }
    )
    capped = [OwedAudit(CAPPED, workspace, at, parameters) for workspace in entered]
    return (*capped, *(OwedAudit(UNCAPPED, workspace, at, None) for workspace in left))


async def write_audit(transaction: Transaction, rows: Sequence[OwedAudit]) -> DatabaseError | None:
    """Insert all of `rows` under a savepoint, so that the transaction goes on either way.

    Returns the server's error when none of them could be written. Rows of other operations than our two are nobody's:
    row security may refuse them, and all of `rows` with them.
    """
    rows = [row for row in rows if row.operation in {CAPPED, UNCAPPED}]
    if not rows:
        return None
    failure = await _insert(transaction, rows, at_present=False)
    if failure is not None and failure.sqlstate == NO_PARTITION:
        failure = await _insert(transaction, rows, at_present=True)
    return failure


async def _insert(transaction: Transaction, rows: Sequence[OwedAudit], *, at_present: bool) -> DatabaseError | None:
    try:
        async with transaction.savepoint("audit"):
            await transaction.execute(
                INSERT_AUDIT,
                [row.operation for row in rows],
                [row.workspace for row in rows],
                [_json(row.parameters) for row in rows],
                [repr(row.at) for row in rows],
                at_present,
            )
    except DatabaseError as error:
        return error
    return None


def _json(parameters: Mapping[str, str] | None) -> str | None:
    return None if parameters is None else json.dumps(dict(parameters))
