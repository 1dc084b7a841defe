"""Which series of a pass get a row."""

from __future__ import annotations

from exporter.queue.reading import WholeQueue
from exporter.queue.samples import Held, HeldSince, Kind, Sample
from exporter.queue.selection import NewRow, select_rows
from exporter.queue.values import SampleResult, TagReading

NOW = 1_700_000_000.0


def queue(*tags: tuple[str, int]) -> WholeQueue:
    readings = (TagReading(tag, number, NOW - 60 if number else None, 0 if number else 1, 0) for tag, number in tags)
    return WholeQueue(NOW, tuple(readings), ())


def stored(tag: str, value: float = 5, age: float = 60) -> dict[tuple[Kind, str], Sample]:
    return {(Kind.COUNT, tag): Sample(NOW - age, Held(value))}


def test_a_new_backlog_gets_a_count_and_a_delay() -> None:
    selection = select_rows(queue(("deno", 3)), {}, 10)
    assert selection.rows == (
        NewRow("queue_count_deno", Held(3)),
        NewRow("queue_delay_deno", HeldSince(NOW - 60)),
    )


def test_a_tag_that_only_runs_has_no_backlog_and_drains() -> None:
    assert select_rows(queue(("deno", 0)), {}, 10).rows == ()
    assert select_rows(queue(("deno", 0)), stored("deno"), 10).rows == (NewRow("queue_count_deno", Held(0)),)


def test_a_tag_is_as_long_as_the_column_allows_in_characters() -> None:
    """A tag over 243 characters is left out alone; bytes do not count."""
    selection = select_rows(queue(("é" * 243, 1), ("x" * 244, 9), ("y" * 255, 9)), {}, 10)
    assert [row.series_id for row in selection.rows] == ["queue_count_" + "é" * 243, "queue_delay_" + "é" * 243]
    assert set(selection.long_tags) == {"x" * 244, "y" * 255}
    assert max(len(row.series_id) for row in selection.rows) == 255


def test_long_tags_take_no_place_from_the_others() -> None:
    selection = select_rows(queue(("x" * 244, 9), ("deno", 1)), {}, 1)
    assert {row.series_id for row in selection.rows} == {"queue_count_deno", "queue_delay_deno"}


def test_the_largest_backlogs_are_stored_first_and_the_rest_is_counted() -> None:
    """Field case F80: the five large tags are always present."""
    tags = [(f"small {number}", 1) for number in range(20_000)] + [(f"large {number}", 1000) for number in range(5)]
    selection = select_rows(queue(*tags), {}, 2000)
    assert len(selection.rows) == 4000
    assert [row.series_id for row in selection.rows[:10:2]] == [f"queue_count_large {number}" for number in range(5)]
    assert selection.over_limit_tags == 18_005


def test_among_equals_a_tag_with_a_recent_series_comes_before_new_ones() -> None:
    selection = select_rows(queue(("a", 1), ("b", 1), ("z", 1)), stored("z", age=400), 1)
    assert {row.series_id for row in selection.rows} == {"queue_count_z", "queue_delay_z"}


def test_a_stored_tag_beyond_the_limit_has_not_drained() -> None:
    selection = select_rows(queue(("large", 5), ("z", 1)), stored("z"), 1)
    assert {row.series_id for row in selection.rows} == {"queue_count_large", "queue_delay_large"}


def test_drains_are_written_whatever_the_limit() -> None:
    last = {key: sample for tag in "abc" for key, sample in stored(tag).items()}
    assert len(select_rows(queue(("large", 5)), last, 1).rows) == 5


def test_every_series_has_one_result() -> None:
    whole = queue(("new", 1), ("same", 5), ("over", 1), ("x" * 250, 1), ("over too", 1))
    last = {**stored("same", 5), **stored("gone"), **stored("silent", 0)}
    selection = select_rows(whole, last, 2)
    assert dict(selection.results(SampleResult.FENCED)) == {
        SampleResult.FENCED: 4,
        SampleResult.UNCHANGED: 2,
        SampleResult.SKIPPED_LONG_TAG: 2,
        SampleResult.SKIPPED_OVER_LIMIT: 4,
    }
