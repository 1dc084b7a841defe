"""The tags that have stored series, as of a moment ago: what names no tag need not reach the database.

While somebody types a target each keystroke is a request, and most of them name a tag that does not exist yet.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

KNOWN_SECONDS: Final = 0.5


class KnownTags:
    """Asks `read` at most twice a second. `monotonic` gives seconds."""

    def __init__(self, read: Callable[[], Awaitable[Sequence[str]]], monotonic: Callable[[], float]) -> None:
        self._read = read
        self._monotonic = monotonic
        self._tags: Sequence[str] = ()
        self._until = float("-inf")

    async def all(self) -> Sequence[str]:
        """Every tag with a stored series, in code point order. Raises `DatabaseError`."""
        if self._monotonic() >= self._until:
            self._tags = await self._read()
            self._until = self._monotonic() + KNOWN_SECONDS
        return self._tags

    async def among(self, tags: Collection[str]) -> tuple[str, ...]:
        """Those of `tags` that exist. Raises `DatabaseError`."""
        known = frozenset(await self.all())
        return tuple(tag for tag in tags if tag in known)
