"""Long loops in slices, between which the event loop is free."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

Item = TypeVar("Item")

SLICE_ITEMS = 1000


async def in_slices(items: Iterable[Item], size: int = SLICE_ITEMS) -> AsyncIterator[Item]:
    """The same items; after each `size` of them others get their turn."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            await asyncio.sleep(0)
