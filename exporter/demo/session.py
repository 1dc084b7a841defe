"""One demo session: a fresh database with Windmill's tables, the exporter at work on it, and a cluster under load."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.resources import files
from typing import Any

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
    """Everything up and connected on a new database of `server`; stopped on leaving. Port 0 takes any free one."""
    url = await create_database(server, database, fairness_enabled=rule is not Rule.OFF)
    config = Config(
        fairness=FairnessConfig(mode=FairnessMode.ENFORCE),
        queue=QueueConfig(mode=QueueMode.SAMPLE),
        web=WebConfig(listen_address=f"127.0.0.1:{port}"),
    )
    target = parse_url(url)
    service = Service(config, lambda: target)
    await service.start()
    try:
        async with Cluster(
            url, load, seed, lambda: decision_in_force(service.board, rule, time.monotonic())
        ) as cluster:
            yield Session(service, cluster)
    finally:
        await service.stop()


async def play(cluster: Cluster, seconds: float | None, watch: Callable[[], Coroutine[Any, Any, None]]) -> float:
    """Run the cluster for `seconds` (None: until cancelled) with `watch` beside it; for how many seconds it ran.

    Raises `DemoError` when the cluster loses its database.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(cluster.run())
                    tasks.create_task(watch())
            except ExceptionGroup as group:
                lost, others = group.split((asyncpg.PostgresError, asyncpg.InterfaceError, OSError))
                if lost is None or others is not None:
                    raise
                raise DemoError(f"the simulated cluster lost its database: {lost.exceptions[0]}") from group
    return cluster.now


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
