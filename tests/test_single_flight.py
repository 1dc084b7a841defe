"""Identical work at one moment is done once; the last one that leaves cancels it."""

from __future__ import annotations

import asyncio

import pytest

from exporter.single_flight import SingleFlight


class Work:
    """Counts how often it begins and how often it is cancelled; ends when it is let go."""

    def __init__(self) -> None:
        self.begun = self.cancelled = 0
        self.go = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return number


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_equal_keys_share_and_different_ones_do_not() -> None:
    flights, work = SingleFlight(), Work()
    asked = [asyncio.create_task(flights.run(key, work)) for key in ("a", "a", "b", "a")]
    await settle()
    assert work.begun == 2
    work.go.set()
    assert await asyncio.gather(*asked) == [1, 1, 2, 1]


async def test_nothing_is_kept_once_it_is_done() -> None:
    flights, work = SingleFlight(), Work()
    work.go.set()
    assert [await flights.run("a", work) for _ in range(2)] == [1, 2]


async def test_everyone_gets_the_error_and_the_next_one_tries_anew() -> None:
    flights, work = SingleFlight(), Work()
    work.error = ValueError("no")
    asked = [asyncio.create_task(flights.run("a", work)) for _ in range(3)]
    await settle()
    work.go.set()
    assert [str(error) for error in await asyncio.gather(*asked, return_exceptions=True)] == ["no"] * 3
    work.error = None
    assert await flights.run("a", work) == 2


async def test_only_the_last_one_that_leaves_cancels() -> None:
    flights, work = SingleFlight(), Work()
    asked = [asyncio.create_task(flights.run("a", work)) for _ in range(3)]
    await settle()
    for task in asked[:2]:
        task.cancel()
    await settle()
    assert work.cancelled == 0
    asked[2].cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await settle()
    assert work.cancelled == 1


async def test_whoever_comes_while_the_cancelled_work_still_ends_begins_its_own() -> None:
    flights, work = SingleFlight(), Work()
    asked = asyncio.create_task(flights.run("a", work))
    await settle()
    asked.cancel()
    await asyncio.sleep(0)
    again = asyncio.create_task(flights.run("a", work))
    await settle()
    assert work.begun == 2
    work.go.set()
    assert await again == 2


async def test_closing_ends_all_of_it_and_waits() -> None:
    flights, work = SingleFlight(), Work()
    asked = [asyncio.create_task(flights.run(key, work)) for key in "abc"]
    await settle()
    await flights.close()
    assert work.cancelled == 3
    for task in asked:
        with pytest.raises(asyncio.CancelledError):
            await task
