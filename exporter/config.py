"""The configuration: one frozen tree, built from flags, environment, file and defaults.

Only the tree stands here, with the limits and the description of each key; flags, variables, error messages and the
help are derived from it (`config_keys.py`). `config.example.yaml` shows every key; a test proves that it equals these.
A key takes effect on a reload when its `extra` says `LIVE`; the others need a restart.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from exporter.fairness.values import FairnessMode
from exporter.queue.values import QueueMode

PORT = r"(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4})"
LISTEN_ADDRESS = rf"\A(?:\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?\]|[A-Za-z0-9_.-]*):{PORT}\Z"
LIVE = {"live": True}
ROUTE_PREFIX = r"\A/?(?:[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*)?/?\Z"


class Secret:
    """A text that shows in no repr, str or log; `reveal` is the only way to it."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one place that needs it."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(<hidden>)" if self._text else "Secret()"


class DatabaseConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`database`: where Windmill's database is, and the limits of everything that we ask of it.

    Of `url` and `url_file` at most one is set in a loaded configuration: the source that wins.
    """

    url: Annotated[Secret, Meta(description="connection URL; better given by DATABASE_URL or a file", extra=LIVE)] = (
        Secret()
    )
    url_file: Annotated[str, Meta(description="file that holds the connection URL; wins over url", extra=LIVE)] = ""
    schema: Annotated[
        str, Meta(max_length=63, description="schema of Windmill's tables; empty: the connection's own")
    ] = ""
    pool_size: Annotated[int, Meta(ge=2, le=20, description="connections at the most")] = 2
    connect_timeout_seconds: Annotated[
        float, Meta(ge=0.1, le=60, description="deadline of one attempt to connect to one host")
    ] = 5.0
    lock_timeout_seconds: Annotated[
        float, Meta(ge=0.1, le=60, description="lock_timeout of our transactions; a lower one of the role stays")
    ] = 2.0
    statement_timeout_seconds: Annotated[
        float, Meta(ge=0.1, le=60, description="statement_timeout of our transactions; our own deadline is 1 s later")
    ] = 4.0


class FairnessPins(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`fairness.settings`: pins Windmill's settings of the same meaning; null follows the database."""

    enabled: Annotated[bool, Meta(description="pins workspace_fairness_enabled", extra=LIVE)] | None = None
    max_percent: (
        Annotated[int, Meta(ge=1, le=100, description="pins workspace_fairness_max_percent", extra=LIVE)] | None
    ) = None
    duration_secs: (
        Annotated[int, Meta(ge=1, le=86_400, description="pins workspace_fairness_duration_secs", extra=LIVE)] | None
    ) = None
    min_total_jobs: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=4_294_967_295,
                description="pins workspace_fairness_min_total_jobs (worker-seconds)",
                extra=LIVE,
            ),
        ]
        | None
    ) = None


class FairnessConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`fairness`: the mode, the relation that holds Windmill's settings, and pinned settings."""

    mode: Annotated[
        FairnessMode,
        Meta(description="off; shadow: read and show, never write; enforce: refresh Windmill's decision", extra=LIVE),
    ] = FairnessMode.SHADOW
    settings_relation: Annotated[
        str,
        Meta(
            min_length=1, max_length=63, description="table or view with Windmill's four fairness settings", extra=LIVE
        ),
    ] = "global_settings"
    settings: FairnessPins = field(default_factory=FairnessPins)


class QueueConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`queue`: the mode, how often the backlog is read, and how many tags are stored at the most."""

    mode: Annotated[
        QueueMode,
        Meta(description="off; observe: read, never write; sample: also store samples and expire old ones", extra=LIVE),
    ] = QueueMode.OBSERVE
    interval_seconds: Annotated[float, Meta(ge=1, le=300, description="how often the backlog is read", extra=LIVE)] = (
        10.0
    )
    retention_days: Annotated[
        int, Meta(ge=1, le=365, description="age at which stored samples are deleted", extra=LIVE)
    ] = 14
    max_stored_tags: Annotated[
        int, Meta(ge=1, le=10_000, description="tags stored per reading at the most, largest backlog first", extra=LIVE)
    ] = 2000


class MetricsConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`metrics`: how many label values are exported, and whether database-derived families are."""

    max_workspaces: Annotated[
        int, Meta(ge=1, le=10_000, description="workspaces exported by name; the others are summed", extra=LIVE)
    ] = 100
    max_tags: Annotated[
        int, Meta(ge=1, le=10_000, description="tags exported by name; the others are summed", extra=LIVE)
    ] = 500
    cluster: Annotated[
        bool, Meta(description="export what was read from the database; false: only the exporter itself", extra=LIVE)
    ] = True


class WebConfigFile(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`web.config`: named so that the flag is `--web.config.file`, as of every Prometheus exporter."""

    file: Annotated[
        str, Meta(description="web config file of the Prometheus exporters: TLS and users; empty: neither", extra=LIVE)
    ] = ""


class WebConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`web`: the listener, and who may ask."""

    listen_address: Annotated[
        str,
        Meta(
            pattern=LISTEN_ADDRESS,
            description="host:port; without a host: every address of every family",
            extra={"expected": "host:port such as :9480, 127.0.0.1:9480 or [::1]:9480"},
        ),
    ] = ":9480"
    route_prefix: Annotated[
        str,
        Meta(
            pattern=ROUTE_PREFIX,
            description="path before every route",
            extra={"expected": "a path such as /windmill, or nothing"},
        ),
    ] = ""
    ready_requires_database: Annotated[
        bool, Meta(description="answer 503 on /-/ready while the database is away or not yet read", extra=LIVE)
    ] = False
    history_deadline_seconds: Annotated[
        float,
        Meta(ge=3, le=300, description="deadline of a request for stored series; Grafana's proxy gives up at 30 s"),
    ] = 25.0
    config: WebConfigFile = field(default_factory=WebConfigFile)
    public_metrics: Annotated[
        bool, Meta(description="answer /metrics without credentials even where users are configured", extra=LIVE)
    ] = False
    enable_lifecycle: Annotated[bool, Meta(description="reload on POST /-/reload, not only on SIGHUP", extra=LIVE)] = (
        False
    )


class LogConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`log`: how much, and in which form."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="least severity that is logged", extra=LIVE)
    ] = "info"
    format: Annotated[Literal["logfmt", "json"], Meta(description="form of the lines on stderr", extra=LIVE)] = "logfmt"


class Config(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole configuration, in the shape of the file."""

    database: DatabaseConfig = field(default_factory=DatabaseConfig)
    fairness: FairnessConfig = field(default_factory=FairnessConfig)
    queue: QueueConfig = field(default_factory=QueueConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    web: WebConfig = field(default_factory=WebConfig)
    log: LogConfig = field(default_factory=LogConfig)
