"""The list of tags is asked for at most twice a second, however many requests there are."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from exporter.errors import DatabaseUnavailable
from exporter.queue.known_tags import KNOWN_SECONDS, KnownTags


@dataclass
class Stored:
    """What is stored, how often it was asked for, and the time."""

    tags: tuple[str, ...] = ("a", "b")
    asked: int = 0
    now: float = 1000.0
    failing: bool = False
    known: KnownTags = field(init=False)

    def __post_init__(self) -> None:
        self.known = KnownTags(self.read, lambda: self.now)

    async def read(self) -> tuple[str, ...]:
        self.asked += 1
        if self.failing:
            raise DatabaseUnavailable("away", reason="unreachable")
        return self.tags


async def test_it_is_read_once_until_it_is_old() -> None:
    stored = Stored()
    assert [await stored.known.all() for _ in range(3)] == [("a", "b")] * 3
    assert stored.asked == 1
    stored.tags, stored.now = ("a", "b", "c"), stored.now + KNOWN_SECONDS - 0.01
    assert await stored.known.all() == ("a", "b")
    stored.now += 0.01
    assert await stored.known.all() == ("a", "b", "c")
    assert stored.asked == 2


async def test_an_empty_list_is_a_list() -> None:
    stored = Stored(tags=())
    assert [await stored.known.all() for _ in range(3)] == [()] * 3
    assert stored.asked == 1


async def test_only_tags_that_exist_are_left_in_the_order_asked_for() -> None:
    stored = Stored()
    assert await stored.known.among(["x", "b", "a", ""]) == ("b", "a")
    assert await stored.known.among([]) == ()
    assert stored.asked == 1


async def test_a_failure_is_raised_and_not_kept() -> None:
    stored = Stored(failing=True)
    with pytest.raises(DatabaseUnavailable):
        await stored.known.all()
    stored.failing = False
    assert await stored.known.all() == ("a", "b")
