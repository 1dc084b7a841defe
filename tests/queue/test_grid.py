"""Series on one grid of time, against direct integration of the samples."""

from __future__ import annotations

import random
from typing import Any

import pytest

from exporter.database.database import Connection
from exporter.errors import BadRequest
from exporter.queue.history import History, Kind, RequestedWindow
from exporter.queue.render import Window
from tests.queue.scene import add_sample
from tests.queue.series_scene import random_rows
from tests.queue.slots import insert_raw, integral


async def test_the_grid_is_what_the_samples_integrate_to(history: History, windmill: Connection) -> None:
    now = float(await windmill.fetchval("SELECT floor(date_part('epoch', now()))"))
    asked = RequestedWindow(from_ms=int(now - 4000) * 1000, to_ms=int(now - 100) * 1000)
    window = Window(now - 4000, now - 100, 1.0)
    source = random.Random(2)
    scenes = {f"scene {number}": random_rows(source, window) for number in range(20)}
    for name, rows in scenes.items():
        await insert_raw(windmill, Kind.DELAY.series_id(name), rows)
    for step in (3900.0, 700.0, 60.0, 7.5):
        rows_of: dict[str, list[Any]] = {}
        for row in await history.grid(asked, step, Kind.DELAY, None):
            rows_of.setdefault(row.tag, []).append(row)
        for name, rows in scenes.items():
            for row in rows_of.get(name, [])[:: 1 if step > 50 else 41]:
                begin = row.time_ms / 1000
                end = min(begin + step, now - 100)
                used = [one for one in rows if window.from_at - 900 < one.at <= window.to_at]
                area, highest = integral(used, begin, end)
                assert row.mean == pytest.approx(area / (end - begin), rel=1e-3, abs=1e-3)
                assert row.max == pytest.approx(highest, abs=1e-3)
        times = {tuple(row.time_ms for row in rows) for rows in rows_of.values()}
        assert len(times) == 1, "one grid for all tags"


async def test_a_grid_is_bounded_in_steps_and_tags(history: History, windmill: Connection) -> None:
    for number in range(51):
        await add_sample(windmill, f"queue_count_{number}", "1", 100)
    with pytest.raises(BadRequest, match=r"^step: "):
        await history.grid(RequestedWindow(), 86.3, Kind.COUNT, ["1"])
    assert len(await history.grid(RequestedWindow(), 86.4, Kind.COUNT, ["1"])) == 1000
    with pytest.raises(BadRequest, match=r"^tags: expected 50 at the most, got 51"):
        await history.grid(RequestedWindow(), None, Kind.COUNT, None)
    rows = await history.grid(RequestedWindow(), None, Kind.COUNT, [str(number) for number in range(50)])
    assert len(rows) == 50 * 120
    assert [(row.time_ms, row.tag) for row in rows] == sorted((row.time_ms, row.tag) for row in rows)
    assert await history.grid(RequestedWindow(), None, Kind.COUNT, ["unknown", "\0"]) == ()
