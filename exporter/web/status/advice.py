"""Pure: what an operator can do about each kind of problem."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_RUN_IT = "Run it as the owner of the table; the exporter asks again by itself within half a minute."
_ITSELF = "Nothing to do: the exporter tries again by itself."
_LIMITS = "Look for locks and load in the database. The limit is database.statement_timeout_seconds."

# By the reason of a `DatabaseError`; a test compares with the reasons that errors.py names.
BY_REASON: Mapping[str, str] = MappingProxyType(
    {
        "unreachable": "Check that PostgreSQL runs and that its host and port can be reached from here.",
        "starting": _ITSELF,
        "authentication": "Check user and password in the connection URL, or in the file that holds it.",
        "tls": "Check sslmode and sslrootcert of the connection URL against what the server offers.",
        "connection_limit": "Raise the limit of the role, the pooler or the server, or lower database.pool_size.",
        "no_such_database": "Check the name of the database in the connection URL.",
        "no_writable_server": "Check that one of the hosts in the connection URL is the primary.",
        "configuration": "Correct the connection URL or the file that it is read from; it is read again by itself.",
        "connection_lost": _ITSELF,
        "backoff": _ITSELF,
        "pool_exhausted": "Raise database.pool_size if this stays.",
        "closed": "The exporter is stopping.",
        "deadline": "The database answers too slowly or not at all. " + _LIMITS,
        "statement_timeout": _LIMITS,
        "lock_timeout": "Somebody holds a lock on the table, such as a migration; it passes when that ends.",
        "missing_schema": "Set database.schema to the schema of Windmill's tables.",
        "missing_table": "Check that the connection URL and database.schema lead to Windmill's database.",
        "missing_column": "Use a version of this exporter that knows this version of Windmill.",
        "missing_privilege": _RUN_IT,
        "row_security": _RUN_IT,
        "read_only": "The server is a standby: let the URL lead to the primary, or use modes that only read.",
        "statement_error": "The log of the exporter has the details.",
    }
)

# By the key of a condition that is no collector's.
BY_CONDITION: Mapping[str, str] = MappingProxyType(
    {
        "settings": "Correct the value in Windmill's instance settings, or pin it under fairness.settings.",
        "clock": "Check the clock of the database server; the next refresh sets the time anew.",
        "payload": "Another writer stored something of another shape; the last good decision stays in force.",
        "audit": "Nothing is lost: the rows are written as soon as audit_partitioned takes them.",
        "capped_since": "The role needs SELECT on audit_partitioned, and a policy for the two operations.",
        "web_config": "Correct the web config file or what it names; it is read again when it changes.",
        "long_tags": "The table metrics takes names of up to 243 characters; shorten the tags to get their history.",
    }
)
