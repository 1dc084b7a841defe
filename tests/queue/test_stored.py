"""The stored rows themselves, page by page."""

from __future__ import annotations

import random

import pytest

from exporter.database.database import Connection
from exporter.errors import TooManyRows
from exporter.queue.history import History
from tests.queue.scene import add_sample
from tests.queue.slots import Raw, insert_raw


async def test_stored_rows_come_in_pages_that_lose_and_double_nothing(
    history: History, windmill: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one moment across the end of a page, and more than fit into one."""
    monkeypatch.setattr("exporter.queue.stored.PAGE_ROWS", 7)
    source = random.Random(1)
    expected: dict[str, list[tuple[float, float]]] = {}
    for tag in ("a", "b", "Z", "é"):
        rows = [Raw(float(1_000_000 + source.randint(0, 12)), str(source.randint(0, 99))) for _ in range(60)]
        now = await windmill.fetchval("SELECT floor(date_part('epoch', now()))")
        rows = [Raw(now - 100 - row.at % 13, row.text) for row in rows]
        await insert_raw(windmill, f"queue_count_{tag}", rows)
        expected[f"queue_count_{tag}"] = sorted((row.at, row.value) for row in rows)
    await add_sample(windmill, "queue_count_old", "1", 15 * 86_400)
    stored = await history.stored()
    assert [one.id for one in stored] == sorted(expected)
    assert {one.id: sorted(one.rows()) for one in stored} == expected
    assert all(list(one.times) == sorted(one.times) for one in stored)


async def test_more_than_200000_stored_rows_are_refused(history: History, windmill: Connection) -> None:
    await windmill.execute(
        "INSERT INTO metrics (id, value, created_at)"
        " SELECT 'queue_count_' || n % 40, '1', now() - n * interval '1 second' FROM generate_series(1, 200001) AS n"
    )
    with pytest.raises(TooManyRows, match="queue_metrics_series"):
        await history.stored()
