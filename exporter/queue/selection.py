"""Pure: which series of one pass over the queue get a row in `metrics`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from exporter.queue.reading import WholeQueue, largest_first
from exporter.queue.samples import COUNT_PREFIX, Backlog, Kind, NewSample, Sample, new_sample
from exporter.queue.values import SampleResult

MAX_ID_CHARACTERS: Final = 255
MAX_TAG_CHARACTERS: Final = MAX_ID_CHARACTERS - len(COUNT_PREFIX)

LastSamples: TypeAlias = Mapping[tuple[Kind, str], Sample]


@dataclass(frozen=True, slots=True)
class NewRow:
    """One row to insert: the id of its series, and what to store."""

    series_id: str
    sample: NewSample


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows to insert, and what became of all the other series."""

    rows: tuple[NewRow, ...]
    unchanged_series: int
    long_tags: tuple[str, ...]
    over_limit_tags: int

    def results(self, stored: SampleResult) -> tuple[tuple[SampleResult, int], ...]:
        """Series by result; `stored` says what became of the rows: stored, or fenced out."""
        return (
            (stored, len(self.rows)),
            (SampleResult.UNCHANGED, self.unchanged_series),
            (SampleResult.SKIPPED_LONG_TAG, len(self.long_tags) * len(Kind)),
            (SampleResult.SKIPPED_OVER_LIMIT, self.over_limit_tags * len(Kind)),
        )


def select_rows(queue: WholeQueue, last: LastSamples, limit: int) -> Selection:
    """Decide every series of the tags with a backlog, and of those that drained since `last`.

    Of the tags with a backlog the `limit` largest are stored. A tag whose ids do not fit the column is left out alone.
    """
    known = {tag for _, tag in last}
    waiting = [one for one in largest_first(queue.tags, known) if one.waiting]
    long_tags = tuple(one.tag for one in waiting if len(one.tag) > MAX_TAG_CHARACTERS)
    storable = {
        one.tag: Backlog(one.waiting, one.head_since)
        for one in waiting
        if one.head_since is not None and len(one.tag) <= MAX_TAG_CHARACTERS
    }
    chosen = dict(list(storable.items())[:limit])
    gone = [key for key in last if key[1] not in storable]
    series = [(kind, tag) for tag in chosen for kind in Kind] + gone
    rows = tuple(_rows(series, queue.read_at, last, chosen))
    return Selection(rows, len(series) - len(rows), long_tags, len(storable) - len(chosen))


def _rows(
    series: list[tuple[Kind, str]], now: float, last: LastSamples, backlogs: Mapping[str, Backlog]
) -> Iterator[NewRow]:
    for kind, tag in series:
        sample = new_sample(kind, now, last.get((kind, tag)), backlogs.get(tag))
        if sample is not None:
            yield NewRow(kind.series_id(tag), sample)
