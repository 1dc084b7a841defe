"""The query parameters of URLs, as libpq, sqlx and managed providers write them: kept or dropped, each by name."""

from __future__ import annotations

from types import MappingProxyType

# Spelling in a URL -> the parameter that it stands for here.
KEPT = MappingProxyType(
    {
        "host": "host",
        "hostaddr": "hostaddr",
        "port": "port",
        "user": "user",
        "username": "user",
        "password": "password",
        "dbname": "dbname",
        "database": "dbname",
        "connect_timeout": "connect_timeout",
        "options": "options",
        "schema": "schema",
        "currentSchema": "schema",
        "search_path": "schema",
        "target_session_attrs": "target_session_attrs",
        "sslmode": "sslmode",
        "ssl-mode": "sslmode",
        "ssl": "sslmode",
        "requiressl": "requiressl",
        "sslrootcert": "sslrootcert",
        "ssl-root-cert": "sslrootcert",
        "ssl-ca": "sslrootcert",
        "sslcert": "sslcert",
        "ssl-cert": "sslcert",
        "sslkey": "sslkey",
        "ssl-key": "sslkey",
        "sslpassword": "sslpassword",
        "sslcrl": "sslcrl",
        "sslcrldir": "sslcrldir",
        "sslnegotiation": "sslnegotiation",
        "ssl_min_protocol_version": "ssl_min_protocol_version",
        "ssl_max_protocol_version": "ssl_max_protocol_version",
    }
)

_NAME = "the exporter sets its own application_name in each transaction"
_KEEPALIVE = "every statement has a deadline instead"
_GSS = "GSSAPI is not supported"
_POOL = "the exporter's own pool is set by database.pool_size"
_CACHE = "the exporter never keeps prepared statements"
_POOLER = "the exporter works behind a pooler without a switch"
_FILE = "only the URL itself is read"
_OAUTH = "OAuth is not supported"
_NOT_ENFORCED = "the driver cannot enforce it"
_TLS = "how TLS is verified follows sslmode and sslrootcert"
_PROTOCOL = "the driver speaks protocol 3.0 and UTF-8 only"

DROPPED = MappingProxyType(
    {
        # libpq
        "application_name": _NAME,
        "fallback_application_name": _NAME,
        "authtype": "it has no effect in libpq either",
        "channel_binding": _NOT_ENFORCED,
        "client_encoding": _PROTOCOL,
        "gssdelegation": _GSS,
        "gssencmode": _GSS,
        "gsslib": _GSS,
        "keepalives": _KEEPALIVE,
        "keepalives_count": _KEEPALIVE,
        "keepalives_idle": _KEEPALIVE,
        "keepalives_interval": _KEEPALIVE,
        "krbsrvname": _GSS,
        "load_balance_hosts": "hosts are tried in their order",
        "max_protocol_version": _PROTOCOL,
        "min_protocol_version": _PROTOCOL,
        "oauth_client_id": _OAUTH,
        "oauth_client_secret": _OAUTH,
        "oauth_issuer": _OAUTH,
        "oauth_scope": _OAUTH,
        "passfile": _FILE,
        "replication": "the exporter opens no replication connection",
        "require_auth": _NOT_ENFORCED,
        "requirepeer": _NOT_ENFORCED,
        "scram_client_key": "put the password into the URL",
        "scram_server_key": "put the password into the URL",
        "service": _FILE,
        "servicefile": _FILE,
        "sslcertmode": _TLS,
        "sslcompression": "TLS is never compressed",
        "sslkeylogfile": "TLS keys are never written to a file",
        "sslsni": "the host name is always sent",
        "tcp_user_timeout": _KEEPALIVE,
        "tty": "it has no effect in libpq either",
        # sqlx, pgx, SQLAlchemy, JDBC, node-postgres
        "ApplicationName": _NAME,
        "default_query_exec_mode": _CACHE,
        "pool_max_conns": _POOL,
        "prepareThreshold": _CACHE,
        "prepared_statement_cache_size": _CACHE,
        "prepared_statements": _CACHE,
        "statement-cache-capacity": _CACHE,
        "statement_cache_capacity": _CACHE,
        "statement_cache_size": _CACHE,
        "uselibpqcompat": "sslmode always means what libpq means",
        # Prisma, Supabase
        "connection_limit": _POOL,
        "max_idle_connection_lifetime": _POOL,
        "pgbouncer": _POOLER,
        "pool_mode": _POOLER,
        "pool_timeout": _POOL,
        "single_use_connections": _POOL,
        "socket_timeout": _KEEPALIVE,
        "sslaccept": _TLS,
        "sslidentity": _TLS,
        "supa": _POOLER,
        "workaround": _POOLER,
    }
)

# What hosted poolers want in `options` to find the tenant. They find it by the host name (TLS SNI) as well.
ROUTING_OPTIONS = frozenset({"endpoint", "project", "reference", "cluster"})

# The variables that libpq reads; the exporter reads none of them.
ENVIRONMENT = frozenset(
    f"PG{name}"
    for name in (
        "APPNAME",
        "CHANNELBINDING",
        "CLIENTENCODING",
        "CONNECT_TIMEOUT",
        "DATABASE",
        "DATESTYLE",
        "GEQO",
        "GSSDELEGATION",
        "GSSENCMODE",
        "GSSLIB",
        "HOST",
        "HOSTADDR",
        "KRBSRVNAME",
        "LOADBALANCEHOSTS",
        "MAXPROTOCOLVERSION",
        "MINPROTOCOLVERSION",
        "OPTIONS",
        "PASSFILE",
        "PASSWORD",
        "PORT",
        "REQUIREAUTH",
        "REQUIREPEER",
        "REQUIRESSL",
        "SERVICE",
        "SERVICEFILE",
        "SSLCERT",
        "SSLCERTMODE",
        "SSLCOMPRESSION",
        "SSLCRL",
        "SSLCRLDIR",
        "SSLKEY",
        "SSLKEYLOGFILE",
        "SSLMAXPROTOCOLVERSION",
        "SSLMINPROTOCOLVERSION",
        "SSLMODE",
        "SSLNEGOTIATION",
        "SSLROOTCERT",
        "SSLSNI",
        "SYSCONFDIR",
        "TARGETSESSIONATTRS",
        "TZ",
        "USER",
    )
)
