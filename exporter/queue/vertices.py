"""The line of one series as vertices, kept in 16 bytes each: a thousand tags have 850,000 of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from exporter.queue.render import Vertex


class Vertices(Sequence[Vertex]):
    """An immutable sequence of `(epoch milliseconds, value)`; tuples exist only while somebody looks at them."""

    __slots__ = ("_times", "_values")

    def __init__(self, vertices: Iterable[Vertex]) -> None:
        kept = list(vertices)
        self._times = array("q", [time for time, _ in kept])
        self._values = array("d", [value for _, value in kept])

    @property
    def peak(self) -> float:
        """The highest value; 0 without vertices."""
        return max(self._values, default=0.0)

    def __len__(self) -> int:
        return len(self._times)

    def __iter__(self) -> Iterator[Vertex]:
        return zip(self._times, self._values, strict=True)

    @overload
    def __getitem__(self, index: int) -> Vertex: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Vertex]: ...
    def __getitem__(self, index: int | slice) -> Vertex | Sequence[Vertex]:
        if isinstance(index, slice):
            return list(zip(self._times[index], self._values[index], strict=True))
        return self._times[index], self._values[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # equal to lists, which have none either

    def __repr__(self) -> str:
        return f"Vertices({list(self)!r})"
