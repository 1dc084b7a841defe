"""The backlog by tag: who is shown, in which order, what is marked, and what the rest sums up to."""

from __future__ import annotations

from exporter.web.status.tags import shown_tags, tags
from exporter.web.status.values import Clocks, Sparkline, Tags
from tests.metrics.scenes import MONOTONIC, NOW, queue, tag
from tests.web.status.scenes import CLOCKS

LINE = Sparkline(((0.0, 0.0),), 3.0, NOW, 2.0)


def names(found: Tags) -> list[str]:
    return [row.tag for row in found.rows]


def test_a_row_is_what_the_reading_says() -> None:
    [row] = tags(queue([tag("bun", 5, running=2, workers=3, waited=12)]), {"bun": LINE}, CLOCKS, 50).rows
    assert (row.tag, row.waiting, row.delay_seconds, row.running, row.workers, row.line) == ("bun", 5, 12.0, 2, 3, LINE)
    assert not row.unattended


def test_backlog_without_a_live_worker_is_marked_and_nothing_else() -> None:
    found = tags(
        queue([tag("a", 1, workers=0), tag("b", 0, running=1, workers=0), tag("c", 1, workers=1)]), None, CLOCKS, 50
    )
    assert {row.tag: row.unattended for row in found.rows} == {"a": True, "b": False, "c": False}


def test_tags_that_nobody_takes_stand_first_then_the_magnitude_counts_then_the_name() -> None:
    read = [
        tag("b", 900),
        tag("z", 5_000),
        tag("a", 100),
        tag("gpu", 3, workers=0),
        tag("idle", running=4),
        tag("c", 7),
    ]
    assert names(tags(queue(read), None, CLOCKS, 50)) == ["gpu", "z", "a", "b", "c", "idle"]


def test_a_drained_tag_is_nought_and_its_workers_are_not_known() -> None:
    [row] = tags(queue(drained=["gone"]), {"gone": LINE}, CLOCKS, 50).rows
    assert (row.waiting, row.delay_seconds, row.running, row.workers, row.line) == (0, None, 0, None, LINE)
    assert not row.unattended


def test_thousands_of_tags_are_bounded_and_none_of_their_jobs_is_lost() -> None:
    """Five large tags among 20,000 (field case F80)."""
    many = [tag(f"t{number}", 1, running=1) for number in range(20_000)]
    large = [tag(f"large{number}", 1_000) for number in range(5)]
    read = queue([*many, *large], other_tags=7, other_waiting=9, other_running=11)
    found = tags(read, None, CLOCKS, 50)
    assert len(found.rows) == 50
    assert names(found)[:5] == [f"large{number}" for number in range(5)]
    assert found.other_tags == 20_005 - 50 + 7
    assert sum(row.waiting for row in found.rows) + found.other_waiting == 25_000 + 9
    assert sum(row.running for row in found.rows) + found.other_running == 20_000 + 11


def test_backlog_is_chosen_before_what_only_runs_and_that_before_what_drained() -> None:
    read = queue([tag("running", running=1_000), tag("waiting", 1)], drained=["drained"]).reading
    assert shown_tags(read, 1) == {"waiting"}
    assert shown_tags(read, 2) == {"waiting", "running"}


def test_a_head_that_is_due_after_its_reading_has_no_negative_delay() -> None:
    [row] = tags(queue([tag("a", 1, waited=-4)]), None, CLOCKS, 50).rows
    assert row.delay_seconds == 0.0


def test_the_age_of_the_reading_goes_on_here() -> None:
    assert tags(queue(), None, Clocks(MONOTONIC + 8, 0), 50).read.age_seconds == 8.0


def test_lines_that_are_not_known_differ_from_tags_without_one() -> None:
    assert not tags(queue([tag("a", 1)]), None, CLOCKS, 50).has_lines
    assert tags(queue([tag("a", 1)]), {}, CLOCKS, 50).has_lines
