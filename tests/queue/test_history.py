"""A window read from the database and drawn: the published cases, hostile rows, tags, deadlines."""

from __future__ import annotations

import json
from typing import Any

from exporter.database.database import Connection, Database
from exporter.queue.history import History, Kind, RequestedWindow
from tests.sources import CASES

PUBLISHED: list[dict[str, Any]] = json.loads((CASES / "render.json").read_text())


async def test_smoke(database: Database, windmill: Connection) -> None:
    await windmill.execute(
        "insert into metrics (id, value, created_at) values ('queue_count_a', '3', now() - interval '100 s'), ('queue_delay_a', '{\"since\": 1700000000}', now() - interval '100 s')"
    )
    history = History(database)
    drawn = await history.series(RequestedWindow(), slots=120, kinds=list(Kind), tags=None)
    print(drawn)
    drawn2 = await history.series(RequestedWindow(), slots=120, kinds=[Kind.COUNT], tags=["a", "b'\\\n$1", "\0"])
    assert list(drawn2.lines[0].vertices)[:-1] == list(drawn.lines[0].vertices)[:-1]
    print(
        await history.tags(),
        await history.stored(),
        (await history.grid(RequestedWindow(), 1000, Kind.COUNT, None))[-3:],
    )
    print(await history.series(RequestedWindow(), slots=120, kinds=[Kind.DELAY], tags=None))
    from exporter.fairness.events import events

    await windmill.execute(
        "insert into audit_partitioned (workspace_id, username, operation, action_kind, resource, parameters) values ('admins','system','workspace_fairness.capped','update','w','{\"a\":\"1\"}')"
    )
    print(await events(database))
    await history.close()
