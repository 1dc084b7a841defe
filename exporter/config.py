"""The configuration: one frozen tree, built from flags, environment, file and defaults.

Only the tree stands here; `config_loading.py` fills it and reports every problem at once. Everything runs on the defaults
and a database URL. `config.example.yaml` shows every key; a test proves that it equals these defaults.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from exporter.fairness.values import FairnessMode
from exporter.queue.values import QueueMode


class DatabaseConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`database`: where Windmill's database is, and the limits of everything that we ask of it."""

    url: str = ""
    url_file: str = ""
    schema: Annotated[str, Meta(max_length=63)] = ""
    pool_size: Annotated[int, Meta(ge=2, le=20)] = 2
    connect_timeout_seconds: Annotated[float, Meta(gt=0, le=60)] = 5.0
    lock_timeout_seconds: Annotated[float, Meta(gt=0, le=60)] = 2.0
    statement_timeout_seconds: Annotated[float, Meta(gt=0, le=60)] = 4.0


class FairnessPins(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`fairness.settings`: pins Windmill's settings of the same meaning; null follows the database."""

    enabled: bool | None = None
    max_percent: Annotated[int, Meta(ge=1, le=100)] | None = None
    duration_secs: Annotated[int, Meta(ge=1, le=86_400)] | None = None
    min_total_jobs: Annotated[int, Meta(ge=0, le=4_294_967_295)] | None = None


class FairnessConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`fairness`: the mode, the relation that holds Windmill's settings, and pinned settings."""

    mode: FairnessMode = FairnessMode.SHADOW
    settings_relation: Annotated[str, Meta(min_length=1, max_length=63)] = "global_settings"
    settings: FairnessPins = field(default_factory=FairnessPins)


class QueueConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`queue`: the mode, how often the backlog is read, and how many tags are stored at the most."""

    mode: QueueMode = QueueMode.OBSERVE
    interval_seconds: Annotated[float, Meta(ge=1, le=300)] = 10.0
    retention_days: Annotated[int, Meta(ge=1, le=365)] = 14
    max_stored_tags: Annotated[int, Meta(ge=1, le=10_000)] = 2000


class MetricsConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`metrics`: how many label values are exported, and whether database-derived families are."""

    max_workspaces: Annotated[int, Meta(ge=1, le=10_000)] = 100
    max_tags: Annotated[int, Meta(ge=1, le=10_000)] = 500
    cluster: bool = True


class WebConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`web`: the listener."""

    listen_address: str = ":9480"
    route_prefix: str = ""
    ready_requires_database: bool = False


class LogConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`log`: how much, and in which form."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["logfmt", "json"] = "logfmt"


class Config(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole configuration, in the shape of the file."""

    database: DatabaseConfig = field(default_factory=DatabaseConfig)
    fairness: FairnessConfig = field(default_factory=FairnessConfig)
    queue: QueueConfig = field(default_factory=QueueConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    web: WebConfig = field(default_factory=WebConfig)
    log: LogConfig = field(default_factory=LogConfig)
