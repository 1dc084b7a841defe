"""Identical requests at one moment cost one piece of work; the last one that leaves cancels it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Flight:
    __slots__ = ("passengers", "task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.passengers = 0


class SingleFlight:
    """Shares work that is under way by key. Nothing is kept once it is done: the next request works anew."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, key: Hashable, work: Callable[[], Awaitable[Result]]) -> Result:
        """The result of `work`, or of the same work that is under way. Equal keys must mean equal work."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(_await(work), name=f"single flight {key!r:.80}"))
            self._tasks.add(flight.task)
            flight.task.add_done_callback(self._tasks.discard)
            flight.task.add_done_callback(lambda _: self._land(key, flight))
        flight.passengers += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.passengers -= 1
            if not flight.passengers and not flight.task.done():
                self._land(key, flight)
                flight.task.cancel()

    async def close(self) -> None:
        """Cancel everything under way, and wait until it has ended."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _land(self, key: Hashable, flight: _Flight) -> None:
        """From now on an equal request begins its own work."""
        if self._flights.get(key) is flight:
            del self._flights[key]


async def _await(work: Callable[[], Awaitable[Result]]) -> Result:
    return await work()
