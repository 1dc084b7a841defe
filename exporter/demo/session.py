"""One demo session: a fresh database with Windmill's tables, the exporter at work on it, and a cluster under load."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.resources import files

import asyncpg

from exporter.config import Config, FairnessConfig, QueueConfig, WebConfig
from exporter.database.statement import quote_identifier
from exporter.database.url import parse_url
from exporter.demo.cluster import Cluster, DecisionInForce
from exporter.demo.load import Load
from exporter.demo.postgres import EmbeddedPostgres
from exporter.errors import DemoError
from exporter.fairness.admission import admission_ppm, target_share
from exporter.fairness.state import decision_age_seconds
from exporter.fairness.values import FairnessMode, Payload
from exporter.queue.values import QueueMode
from exporter.service import Service
from exporter.snapshot import Board

ENABLE_FAIRNESS = "INSERT INTO global_settings (name, value) VALUES ('workspace_fairness_enabled', $1::text::jsonb)"

HEAD_START_SECONDS = 1.0


class Rule(StrEnum):
    """How the workers of a session treat the capped tenant."""

    OFF = "fairness off"
    CONSTANT = "constant p = t"
    WEIGHTED = "duration-weighted"


@dataclass(frozen=True, slots=True)
class Session:
    """What a session consists of, while it lasts."""

    service: Service
    cluster: Cluster


@contextlib.asynccontextmanager
async def session(
    server: EmbeddedPostgres, database: str, rule: Rule, load: Load, seed: int, port: int = 0
) -> AsyncIterator[Session]:
    """A cluster at work on a new database of `server`, and the exporter beside it; both end on leaving.

    Port 0 takes any free one. Raises `ConfigError` when the port is taken and `DemoError` when the database is lost.
    """
    url = await create_database(server, database, fairness_enabled=rule is not Rule.OFF)
    config = Config(
        fairness=FairnessConfig(mode=FairnessMode.ENFORCE),
        queue=QueueConfig(mode=QueueMode.SAMPLE),
        web=WebConfig(listen_address=f"127.0.0.1:{port}"),
    )
    target = parse_url(url)
    service = Service(config, lambda: target)
    cluster = Cluster(url, load, seed, lambda: decision_in_force(service.board, rule, time.monotonic()))
    try:
        async with cluster, asyncio.TaskGroup() as tasks:
            playing = tasks.create_task(cluster.run())
            # An idle cluster is looked at every 5 s only; the first look should find the flood.
            await asyncio.sleep(HEAD_START_SECONDS)
            await service.start()
            try:
                yield Session(service, cluster)
            finally:
                playing.cancel()
                await service.stop()
    except ExceptionGroup as group:
        raise _cause(group) from group


def _cause(group: ExceptionGroup[Exception]) -> Exception:
    """The first failure of nested task groups; `DemoError` when it is the database's."""
    first: Exception = group
    while isinstance(first, ExceptionGroup):
        first = first.exceptions[0]
    if isinstance(first, asyncpg.PostgresError | asyncpg.InterfaceError | OSError):
        return DemoError(f"the simulated cluster lost its database: {first}")
    return first


def decision_in_force(board: Board, rule: Rule, now_monotonic: float) -> DecisionInForce:
    """What the workers of a session go by: the stored decision, under `CONSTANT` with p = t in place of its p_c."""
    snapshot = board.current.fairness
    if snapshot is None:
        return DecisionInForce(Payload(), None)
    payload = snapshot.in_force
    if rule is Rule.CONSTANT:
        payload = replace(payload, admission_ppm=admission_ppm(target_share(snapshot.settings.max_percent)))
    return DecisionInForce(payload, decision_age_seconds(snapshot, now_monotonic))


async def create_database(server: EmbeddedPostgres, name: str, *, fairness_enabled: bool) -> str:
    """A new database with Windmill's tables, and its setting `workspace_fairness_enabled`; the owner's URL."""
    admin = await asyncpg.connect(server.url())
    try:
        await admin.execute(f"CREATE DATABASE {quote_identifier(name)}")
    finally:
        await admin.close()
    url = server.url(database=name)
    owner = await asyncpg.connect(url)
    try:
        await owner.execute((files("exporter.demo") / "schema" / "windmill.sql").read_text(encoding="utf-8"))
        await owner.execute(ENABLE_FAIRNESS, "true" if fairness_enabled else "false")
    finally:
        await owner.close()
    return url
