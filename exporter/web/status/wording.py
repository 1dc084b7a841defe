"""Pure: numbers, times and names as the page says them.

A number and its unit are held together by a no-break space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

MINUTE = 60
HOUR = 3600
DAY = 86_400
# A stored time may be any number; datetime ends with the year 9999.
MAX_EPOCH_SECONDS = 253_402_300_799.0
SHORT_NAME_CHARACTERS = 40
# What does not print is shown as its escape, except these: joiners that scripts and emoji need, and our own spaces.
JOINERS = frozenset("\u200c\u200d\u00a0")


@dataclass(frozen=True, slots=True)
class Name:
    """A name of somebody else's choice within a sentence: a workspace, a tag. Shown apart from the words around it."""

    text: str


Part = str | Name
Sentence = tuple[Part, ...]


def visible(text: str) -> str:
    """`text` with everything that does not print, turns the reading direction or cannot be encoded as an escape."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in JOINERS else _escape(one) for one in text)


def shown_name(text: str) -> str:
    """A name as something to see, also when it is empty or all blank."""
    return visible(text) if text.strip() else f'"{visible(text)}"'


def shortened(text: str) -> str:
    """A name that fits into a sentence; the tables have it whole."""
    return text if len(text) <= SHORT_NAME_CHARACTERS else text[: SHORT_NAME_CHARACTERS - 1] + "…"


def enumerated(names: Sequence[str], limit: int = 3) -> Sentence:
    """`a`, `a and b`, `a, b and c`, `a, b and 12 others`."""
    shown = list(names) if len(names) <= limit else list(names[: limit - 1])
    last: Part = Name(shown.pop()) if len(names) <= limit else f"{count(len(names) - len(shown))} others"
    if not shown:
        return (last,)
    parts: list[Part] = []
    for position, name in enumerate(shown):
        parts += [", ", Name(name)] if position else [Name(name)]
    return (*parts, " and ", last)


def count(number: int) -> str:
    """`1,234`."""
    return f"{number:,}"


def counted(number: int, one: str, many: str) -> str:
    """`1 job`, `1,234 jobs`."""
    return f"{count(number)}\u00a0{one if number == 1 else many}"


def percent(ratio: float) -> str:
    """`78 %`; one decimal below 10 %, and never 0 or 100 for what is only near it."""
    value = max(0.0, ratio) * 100
    if 0 < value < 0.05:
        return "<\u00a00.1\u00a0%"
    if 99.5 <= value < 100:
        return ">\u00a099\u00a0%"
    text = f"{value:.1f}".removesuffix(".0") if value < 9.95 else f"{value:.0f}"
    return f"{text}\u00a0%"


def seconds_of_work(seconds: float) -> str:
    """Worker-seconds: `0.4`, `12`, `1,234`."""
    return f"{seconds:.1f}".removesuffix(".0") if seconds < 9.95 else f"{seconds:,.0f}"


def duration(seconds: float) -> str:
    """`4 s`, `3 min 12 s`, `2 h 5 min`, `3 d 4 h`: the two largest units."""
    whole = int(max(0.0, seconds))
    for size, unit, smaller, smaller_unit in (
        (DAY, "d", HOUR, "h"),
        (HOUR, "h", MINUTE, "min"),
        (MINUTE, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            large = f"{count(whole // size)}\u00a0{unit}"
            return f"{large} {rest}\u00a0{smaller_unit}" if rest else large
    return f"{whole}\u00a0s"


def mean(seconds: float) -> str:
    """A mean duration, which may be short: `0.1 s`, `3.4 s`, `34 s`, `2 min 5 s`."""
    if seconds >= 9.95:
        return duration(seconds)
    return f"{seconds:.1f}".removesuffix(".0") + "\u00a0s" if seconds >= 0.95 else f"{max(seconds, 0.001):.1g}\u00a0s"


def ago(seconds: float) -> str:
    """`just now`, `8 s ago`, `3 min ago`, `2 h ago`: the largest unit."""
    if seconds < 1:
        return "just now"
    return f"{duration(seconds).split(' ')[0]} ago"


def utc(epoch_seconds: float) -> datetime:
    """The moment, bounded to what a date can be."""
    bounded = min(max(epoch_seconds, 0.0), MAX_EPOCH_SECONDS) if epoch_seconds == epoch_seconds else 0.0  # noqa: PLR0124 -- NaN
    return datetime.fromtimestamp(bounded, UTC)


def clock(epoch_seconds: float, age_seconds: float, *, exact: bool = False) -> str:
    """`02:14 UTC`, `02:14:05 UTC` when `exact`, `14 Jan 02:14 UTC` when it is half a day ago or more."""
    at = utc(epoch_seconds)
    if abs(age_seconds) >= DAY / 2:
        return f"{at.day}\u00a0{at:%b} {at:%H:%M}\u00a0UTC"
    return f"{at:%H:%M:%S}\u00a0UTC" if exact else f"{at:%H:%M}\u00a0UTC"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
