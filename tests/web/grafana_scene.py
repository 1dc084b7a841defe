"""The running product with stored series, and requests to its JSON datasource."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from aiohttp import ClientSession

from exporter.config import Config, FairnessConfig, QueueConfig
from exporter.database.database import Connection
from exporter.fairness.values import FairnessMode
from exporter.queue.values import QueueMode
from tests.product import service
from tests.web.grafana_requests import FROM_MS, TO_MS

# Nothing but the requests reads the database.
NO_LOOPS = Config(fairness=FairnessConfig(mode=FairnessMode.OFF), queue=QueueConfig(mode=QueueMode.OFF))
Answer = tuple[int, Any]


@dataclass(frozen=True)
class Grafana:
    """A client of `/grafana`."""

    session: ClientSession

    async def post(self, path: str, body: object = None) -> Answer:
        """Status and decoded answer; a body that is bytes goes as it is."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(f"grafana{path}", data=BytesIO(data)) as response:
            assert response.content_type == "application/json"
            return response.status, await response.json()

    async def query(self, *targets: object, **more: object) -> Any:
        """The answer to a query of the window of `grafana_requests`, which must be 200."""
        described = [{"target": target} if isinstance(target, str) else target for target in targets]
        body = {"range": {"from": FROM_MS, "to": TO_MS}, "targets": described, **more}
        status, answer = await self.post("/query", body)
        assert status == 200, answer
        return answer


@asynccontextmanager
async def grafana_of(database_url: str, config: Config = NO_LOOPS) -> AsyncIterator[Grafana]:
    """The product on a database, and a client of it."""
    async with service(database_url, config) as running, ClientSession(f"{running.urls[0]}/") as session:
        yield Grafana(session)


async def store(connection: Connection, kind: str, tag: str, samples: Iterable[tuple[float, object]]) -> None:
    """Rows of one series: seconds after the beginning of the window, and the value."""
    await connection.executemany(
        "INSERT INTO metrics (id, value, created_at) VALUES ($1, $2::text::jsonb, to_timestamp($3))",
        [(f"queue_{kind}_{tag}", json.dumps(value), FROM_MS / 1000 + after) for after, value in samples],
    )


def since(after: float) -> dict[str, float]:
    """A climb whose head waits since that many seconds after the beginning of the window."""
    return {"since": FROM_MS / 1000 + after}


async def store_afternoon(connection: Connection, tags: Iterable[str]) -> None:
    """For each tag a count in steps, and a delay that climbs, drops, spikes for less than a slot, and falls silent."""
    for number, tag in enumerate(tags):
        shift = number * 7.0
        counts = [(shift + 300.0 * step, (step * 7 + number) % 40 + 1) for step in range(30)]
        spike = [(shift + 9_301.0, 900 + number), (shift + 9_330.0, 2)]
        delays: list[tuple[float, object]] = [(shift + 300.0 * step, since(shift)) for step in range(12)]
        delays += [(shift + 3_400.0, 12.5), (shift + 3_425.0, 0)]
        delays += [(shift + 6_000.0 + 30.0 * step, since(shift + 5_990.0 + 31.0 * step)) for step in range(20)]
        await store(connection, "count", tag, [*counts, *spike])
        await store(connection, "delay", tag, delays)
