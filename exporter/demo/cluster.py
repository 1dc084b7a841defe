"""A simulated cluster: workers that really pull, mark, ping, sleep and complete over SQL, and tenants that enqueue.

It stands on connections of its own as the tables' owner, as Windmill does. One process plays everybody, so what would
be one statement a worker is one statement for all of them (completions, pings, arrivals). A pull stays one pull.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from types import TracebackType
from typing import Self
from uuid import UUID, uuid4

import asyncpg

from exporter.database.database import Connection
from exporter.demo.load import NOISY, SERVED_TAGS, Arrival, Load, arrivals, flood
from exporter.demo.measures import Run, Waiting
from exporter.demo.statements import COMPLETE, ENQUEUE, PING_JOBS, PING_WORKERS, REGISTER_WORKERS
from exporter.fairness.dispatch import Dispatcher
from exporter.fairness.values import Payload

PULL_CONNECTIONS = 3
ENQUEUE_EVERY_SECONDS = 0.02
JOB_PING_EVERY_SECONDS = 0.2
WORKER_PING_EVERY_SECONDS = 5.0
IDLE_POLL_SECONDS = 0.25
KEPT_RUNS = 300_000


@dataclass(frozen=True, slots=True)
class DecisionInForce:
    """What a worker knows when it pulls: the stored decision, and its age in seconds (None: never decided)."""

    payload: Payload
    age_seconds: float | None


class Cluster:
    """`async with` opens its connections; `run` plays until it is cancelled; the records stay readable afterwards."""

    def __init__(self, url: str, load: Load, seed: int, decision: Callable[[], DecisionInForce]) -> None:
        self._url = url
        self._load = load
        self._decision = decision
        self._arrivals = arrivals(load, seed)
        self._flood = flood(seed)
        self._draws = random.Random(f"draws {seed}")  # noqa: S311 -- a repeatable load, not a secret
        self._dispatcher = Dispatcher()
        self._connections: list[Connection] = []
        self._pulling: asyncio.Queue[Connection] = asyncio.Queue()
        self._arrived = asyncio.Condition()
        self._ended: list[tuple[UUID, asyncio.Future[None]]] = []
        self._any_ended = asyncio.Event()
        self._waiting: dict[UUID, Waiting] = {}
        self._noisy_waiting = 0
        self._running: dict[UUID, Run] = {}
        self._runs: deque[Run] = deque(maxlen=KEPT_RUNS)
        self._started_monotonic = time.monotonic()
        self.completed_jobs = 0
        self.max_lag_seconds = 0.0

    @property
    def now(self) -> float:
        """Seconds since `run` began."""
        return time.monotonic() - self._started_monotonic

    @property
    def waiting(self) -> list[Waiting]:
        """Every job that no worker has pulled yet."""
        return list(self._waiting.values())

    def runs_since(self, at_seconds: float) -> list[Run]:
        """The jobs that held a worker at that time or later, the running ones included."""
        ended = takewhile(lambda run: run.ended_at is not None and run.ended_at >= at_seconds, reversed(self._runs))
        return [*ended, *self._running.values()]

    async def __aenter__(self) -> Self:
        try:
            for _ in range(PULL_CONNECTIONS + 3):
                self._connections.append(await asyncpg.connect(self._url))
        except BaseException:
            self._terminate()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._terminate()

    async def run(self) -> None:
        """Play until cancelled. Raises, in a group, what a statement raised."""
        enqueuing, completing, pinging, *pulling = self._connections
        for connection in pulling:
            self._pulling.put_nowait(connection)
        names = [f"demo-worker-{number}" for number in range(1, self._load.workers + 1)]
        await pinging.execute(REGISTER_WORKERS, names, SERVED_TAGS)
        self._started_monotonic = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._enqueue_arrivals(enqueuing))
            tasks.create_task(self._complete_ended(completing))
            tasks.create_task(self._ping(pinging, names))
            for _ in names:
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            job = await self._pull()
            if job is None:
                await self._wait_for_work()
                continue
            job_id, duration_seconds = job
            await asyncio.sleep(duration_seconds)
            completed = asyncio.get_running_loop().create_future()
            self._ended.append((job_id, completed))
            self._any_ended.set()
            await completed
            self._runs.append(replace(self._running.pop(job_id), ended_at=self.now))

    async def _pull(self) -> tuple[UUID, float] | None:
        async with self._pulling_connection() as connection:
            decision = self._decision()
            draw = self._draws.randrange(10_000)
            job = await self._dispatcher.pull(connection, [SERVED_TAGS], decision.payload, decision.age_seconds, draw)
        if job is None:
            return None
        waited = self._waiting.pop(job.id)
        self._noisy_waiting -= waited.workspace == NOISY
        self._running[job.id] = Run(waited.workspace, waited.arrived_at, self.now, None)
        return job.id, waited.duration_seconds

    @contextlib.asynccontextmanager
    async def _pulling_connection(self) -> AsyncIterator[Connection]:
        connection = await self._pulling.get()
        try:
            yield connection
        finally:
            self._pulling.put_nowait(connection)

    async def _wait_for_work(self) -> None:
        """Until the tenants enqueue; the limit covers a job that arrived between the empty pull and this wait."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_POLL_SECONDS), self._arrived:
                await self._arrived.wait()

    async def _enqueue_arrivals(self, connection: Connection) -> None:
        coming = next(self._arrivals)
        while True:
            now, batch = self.now, []
            while coming.at_seconds <= now:
                batch.append(coming)
                self.max_lag_seconds = max(self.max_lag_seconds, now - coming.at_seconds)
                coming = next(self._arrivals)
            lacking = self._load.backlog - self._noisy_waiting
            batch += [replace(job, at_seconds=now) for job in islice(self._flood, lacking)]
            if batch:
                await self._enqueue(connection, batch)
            await asyncio.sleep(ENQUEUE_EVERY_SECONDS)

    async def _enqueue(self, connection: Connection, batch: list[Arrival]) -> None:
        """The waiting jobs are known here before the rows are visible: a worker may pull one before we hear back."""
        jobs = {uuid4(): arrival for arrival in batch}
        self._noisy_waiting += sum(arrival.workspace == NOISY for arrival in batch)
        for job_id, arrival in jobs.items():
            self._waiting[job_id] = Waiting(arrival.workspace, arrival.at_seconds, arrival.duration_seconds)
        workspaces = [arrival.workspace for arrival in batch]
        await connection.execute(ENQUEUE, list(jobs), workspaces, [arrival.tag for arrival in batch])
        async with self._arrived:
            self._arrived.notify(len(batch))

    async def _complete_ended(self, connection: Connection) -> None:
        """Everything that ended while the last statement ran goes into the next one."""
        while True:
            await self._any_ended.wait()
            self._any_ended.clear()
            batch, self._ended = self._ended, []
            await connection.execute(COMPLETE, [job_id for job_id, _ in batch])
            self.completed_jobs += len(batch)
            for _, completed in batch:
                completed.set_result(None)

    async def _ping(self, connection: Connection, workers: list[str]) -> None:
        worker_ping_due = 0.0
        while True:
            await connection.execute(PING_JOBS, list(self._running))
            if self.now >= worker_ping_due:
                await connection.execute(PING_WORKERS, workers)
                worker_ping_due = self.now + WORKER_PING_EVERY_SECONDS
            await asyncio.sleep(JOB_PING_EVERY_SECONDS)

    def _terminate(self) -> None:
        for connection in self._connections:
            connection.terminate()
