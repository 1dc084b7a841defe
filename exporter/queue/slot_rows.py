"""The rows of `series.sql` as they arrive in binary COPY, as series of slots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from exporter.queue.render import Slot

CARRIED: Final = -1
HEADER_BYTES: Final = 19
ID_LENGTH: Final = Struct(">xxi")
# Every column behind the id has a fixed width and is never null; before each stand the four bytes of its length.
FIXED: Final = Struct(">4xi4xd4xd4xd4xd4xd4x?4x?")
END: Final = b"\xff\xff"


@dataclass(slots=True)
class Series:
    """The slots of one series in a window, in order of time; `carried` is the last sample before it."""

    id: str
    carried: Slot | None
    slots: list[Slot]


class SlotRows:
    """Takes the bytes of a COPY in pieces of any size and yields each series once its last row has come."""

    __slots__ = ("_begun", "_id", "_rest", "_series")

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False
        self._id = b""
        self._series: Series | None = None

    def feed(self, piece: bytes) -> Iterator[Series]:
        """The series that `piece` completes."""
        data = self._rest + piece if self._rest else piece
        position = 0
        if not self._begun:
            if len(data) < HEADER_BYTES:
                self._rest = data
                return
            self._begun, position = True, HEADER_BYTES
        end = len(data) - ID_LENGTH.size
        while position <= end and data[position : position + 2] != END:
            begin = position + ID_LENGTH.size
            behind_id = begin + ID_LENGTH.unpack_from(data, position)[0]
            if behind_id + FIXED.size > len(data):
                break
            series_id = data[begin:behind_id]
            if series_id != self._id or self._series is None:
                if self._series is not None:
                    yield self._series
                self._id, self._series = series_id, Series(series_id.decode(), None, [])
            number, *fields = FIXED.unpack_from(data, behind_id)
            if number == CARRIED:
                self._series.carried = Slot._make(fields)
            else:
                self._series.slots.append(Slot._make(fields))
            position = behind_id + FIXED.size
        self._rest = data[position:]

    def finish(self) -> Iterator[Series]:
        """The last series."""
        if self._series is not None:
            yield self._series
            self._series = None
