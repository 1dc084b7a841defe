"""Rows of a binary COPY, in whatever pieces they arrive."""

from __future__ import annotations

import struct

import pytest

from exporter.queue.render import Slot
from exporter.queue.slot_rows import Series, SlotRows
from exporter.queue.vertices import Vertices

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)


def row(series_id: str, number: int, value: float) -> bytes:
    """One tuple as the server sends it."""
    fields = [series_id.encode(), struct.pack(">i", number)]
    fields += [struct.pack(">d", each) for each in (1.0, 2.0, value, value, value)]
    fields += [b"\1", b"\0"]
    return struct.pack(">h", len(fields)) + b"".join(struct.pack(">i", len(each)) + each for each in fields)


def slot(value: float) -> Slot:
    return Slot(1.0, 2.0, value, value, value, True, False)


COPIED = HEADER + row("a", -1, 1.5) + row("a", 3, 2.5) + row("é" * 200, 0, 3.5) + row("", 7, 4.5) + b"\xff\xff"
EXPECTED = [
    Series("a", slot(1.5), [slot(2.5)]),
    Series("é" * 200, None, [slot(3.5)]),
    Series("", None, [slot(4.5)]),
]


@pytest.mark.parametrize("size", [1, 2, 7, 19, 64, 100_000])
def test_pieces_of_any_size_give_the_same_series(size: int) -> None:
    rows = SlotRows()
    found: list[Series] = []
    for begin in range(0, len(COPIED), size):
        found.extend(rows.feed(COPIED[begin : begin + size]))
    found.extend(rows.finish())
    assert found == EXPECTED


def test_no_rows_are_no_series() -> None:
    rows = SlotRows()
    assert list(rows.feed(HEADER + b"\xff\xff")) == []
    assert list(rows.finish()) == []


def test_vertices_are_a_sequence_that_cannot_change() -> None:
    line = [(1, 2.0), (3, 9.5), (4, 0.0)]
    vertices = Vertices(line)
    assert vertices == line
    assert (len(vertices), vertices[1], list(vertices[1:]), vertices.peak) == (3, (3, 9.5), line[1:], 9.5)
    assert Vertices(iter(line)) == vertices
    assert vertices != [(1, 2.0)]
    assert Vertices(()).peak == 0.0
    assert "(3, 9.5)" in repr(vertices)
