"""What kind of server, database and role we are connected to, for people."""

from __future__ import annotations

from dataclasses import dataclass

from exporter.database.database import Database
from exporter.database.statement import Statement

OLDEST_SUPPORTED = 14
NEWEST_SUPPORTED = 18

DESCRIBE = Statement(
    "describe",
    """
    SELECT current_setting('server_version_num')::int / 10000 AS major_version,
           current_setting('server_version') AS version,
           current_database()::text AS database_name,
           current_user::text AS role_name,
           pg_is_in_recovery() AS standby,
           current_setting('default_transaction_read_only') = 'on' AS read_only
    """,
)


@dataclass(frozen=True, slots=True)
class Server:
    """One server as seen by our role. `read_only` says that this role's transactions cannot write by default."""

    major_version: int
    version: str
    database: str
    role: str
    standby: bool
    read_only: bool

    @property
    def is_too_old(self) -> bool:
        """Whether the statements are known not to run there."""
        return self.major_version < OLDEST_SUPPORTED

    @property
    def accepts_writes(self) -> bool:
        """Whether a transaction of ours may write, as far as the server is concerned."""
        return not (self.standby or self.read_only)


async def describe_server(database: Database) -> Server:
    """Ask the server about itself. Raises `DatabaseError`."""
    async with database.transaction("server") as transaction:
        [row] = await transaction.fetch(DESCRIBE)
    return Server(
        major_version=row["major_version"],
        version=row["version"],
        database=row["database_name"],
        role=row["role_name"],
        standby=row["standby"],
        read_only=row["read_only"],
    )
