"""Every test fails when something blocked its event loop, or left a task behind.

Time that the loop's thread waited for a processor does not count, so that a busy machine fails nothing: what counts is
computing, and sleeping inside one callback (a blocking call).
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from asyncio import events
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Self

import pytest

BLOCKED_SECONDS = 0.5
TASK_GRACE_SECONDS = 1.0
SCHEDULER_STATISTICS = Path("/proc/thread-self/schedstat")


class LoopWatch:
    """Measures every callback of the loops of this thread, and keeps those that took too long."""

    def __init__(self) -> None:
        self.blocked: list[str] = []
        self._thread = threading.get_ident()
        # Kept open: opening it for each callback would cost more than most callbacks.
        self._statistics = os.open(SCHEDULER_STATISTICS, os.O_RDONLY) if SCHEDULER_STATISTICS.exists() else None
        self._run = events.Handle._run

    def __enter__(self) -> Self:
        watch = self

        def run(handle: events.Handle) -> None:
            if threading.get_ident() != watch._thread:
                watch._run(handle)
                return
            began = watch._busy_seconds()
            watch._run(handle)
            seconds = watch._busy_seconds() - began
            if seconds > BLOCKED_SECONDS:
                watch.blocked.append(f"{seconds:.2f} s in {handle!r}")

        setattr(events.Handle, "_run", run)  # noqa: B010 -- asyncio has no hook around a callback
        return self

    def __exit__(self, *_: object) -> None:
        setattr(events.Handle, "_run", self._run)  # noqa: B010 -- see above
        if self._statistics is not None:
            os.close(self._statistics)

    def _busy_seconds(self) -> float:
        """A clock that stands still while this thread waits for a processor."""
        if self._statistics is None:
            return time.thread_time()
        waited_ns = int(os.pread(self._statistics, 128, 0).split()[1])
        return time.perf_counter() - waited_ns / 1e9


@pytest.fixture(scope="session")
def loop_watch() -> Iterator[LoopWatch]:
    with LoopWatch() as watch:
        yield watch


@pytest.fixture(autouse=True)
def loop_is_never_blocked(loop_watch: LoopWatch, request: pytest.FixtureRequest) -> Iterator[None]:
    loop_watch.blocked.clear()
    yield
    if loop_watch.blocked and request.node.get_closest_marker("may_block") is None:
        pytest.fail("the event loop was blocked: " + "; ".join(loop_watch.blocked))


@pytest.fixture(autouse=True)
async def no_task_is_left_behind() -> AsyncIterator[None]:
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        _, left = await asyncio.wait(left, timeout=TASK_GRACE_SECONDS)
    if left:
        pytest.fail("left behind: " + "; ".join(sorted(repr(task) for task in left)))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "may_block(reason): the test itself blocks its loop, and says why")
