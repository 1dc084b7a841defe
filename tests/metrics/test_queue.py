"""A queue reading as families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from exporter.metrics.collect import Chosen, Scope
from exporter.queue.values import QueueSnapshot, WorkspaceWait
from tests.metrics.scenes import MONOTONIC, NOW, SCOPE, collected, queue, snapshot, tag, values


def exported(part: QueueSnapshot, *, age: float = 0) -> Mapping[str, Mapping[str, float]]:
    return values(collected(snapshot(None, part), now=MONOTONIC + age))


def limited(
    part: QueueSnapshot, limit: int, previous: Sequence[str] = ()
) -> tuple[Mapping[str, Mapping[str, float]], Chosen]:
    scope = Scope(SCOPE.fairness_mode, max_workspaces=limit, max_tags=limit)
    result = collected(snapshot(None, part), scope=scope, previous=Chosen(tags=frozenset(previous)))
    return values(result), result.chosen


def test_a_tag_with_backlog_has_all_five_families() -> None:
    found = exported(queue([tag("default", 9, running=3, workers=2, waited=12.5)]))
    assert found["windmill_queue_waiting_jobs"] == {"default": 9}
    assert found["windmill_queue_delay_seconds"] == {"default": 12.5}
    assert found["windmill_queue_head_since_timestamp_seconds"] == {"default": NOW - 12.5}
    assert found["windmill_queue_running_jobs"] == {"default": 3}
    assert found["windmill_queue_workers"] == {"default": 2}


def test_the_delay_is_as_of_the_reading_whenever_it_is_scraped() -> None:
    """Field case F83: two replicas that look at different moments export the same numbers."""
    part = queue([tag("default", 9)])
    assert exported(part) == exported(part, age=25)


def test_a_head_in_the_future_has_waited_0_seconds() -> None:
    found = exported(queue([tag("default", 1, waited=-5.0)], workspaces=[WorkspaceWait("w", 1, NOW + 5)]))
    assert found["windmill_queue_delay_seconds"] == {"default": 0}
    assert found["windmill_workspace_longest_wait_seconds"] == {"w": 0}


def test_a_tag_that_only_runs_has_no_head() -> None:
    found = exported(queue([tag("busy", 0, running=4)]))
    assert found["windmill_queue_waiting_jobs"] == {"busy": 0}
    assert found["windmill_queue_delay_seconds"] == {"busy": 0}
    assert found["windmill_queue_head_since_timestamp_seconds"] == {}


def test_a_drained_tag_is_0_without_a_head_and_without_a_guess_at_its_workers() -> None:
    found = exported(queue(drained=["gone"]))
    assert found["windmill_queue_waiting_jobs"] == {"gone": 0}
    assert found["windmill_queue_delay_seconds"] == {"gone": 0}
    assert found["windmill_queue_running_jobs"] == {"gone": 0}
    assert found["windmill_queue_head_since_timestamp_seconds"] == {}
    assert found["windmill_queue_workers"] == {}


def test_a_tag_both_read_and_drained_is_exported_as_read() -> None:
    assert exported(queue([tag("back", 3)], drained=["back"]))["windmill_queue_waiting_jobs"] == {"back": 3}


def test_a_tag_that_nobody_serves_shows_0_workers() -> None:
    assert exported(queue([tag("orphan", 3, workers=0)]))["windmill_queue_workers"] == {"orphan": 0}


def test_waits_by_workspace_are_exported() -> None:
    found = exported(queue(workspaces=[WorkspaceWait("a", 4, NOW - 60), WorkspaceWait("b", 1, NOW - 3)]))
    assert found["windmill_workspace_waiting_jobs"] == {"a": 4, "b": 1}
    assert found["windmill_workspace_longest_wait_seconds"] == {"a": 60, "b": 3}


def test_tags_with_backlog_are_kept_before_running_and_running_before_drained_ones() -> None:
    part = queue([tag("runs", 0, running=900), tag("waits", 1), tag("idle", 0, running=1)], drained=["gone"])
    assert limited(part, 1)[1].tags == {"waits"}
    assert limited(part, 2)[1].tags == {"waits", "runs"}
    assert limited(part, 3)[1].tags == {"waits", "runs", "idle"}


def test_left_out_tags_are_summed_up_and_counted() -> None:
    part = queue([tag(f"t{number}", 10 + number) for number in range(10)])
    found, chosen = limited(part, 3)
    assert chosen.tags == {"t7", "t8", "t9"}
    assert found["windmill_queue_waiting_jobs"] == {"t7": 17, "t8": 18, "t9": 19}
    assert found["windmill_queue_other_waiting_jobs"] == {"": sum(range(10, 17))}


def test_what_the_reading_itself_summed_up_is_part_of_the_rest() -> None:
    part = queue([tag("a", 2)], other_tags=7, other_waiting=40, other_workspaces=3)
    result = collected(snapshot(None, part))
    assert values(result)["windmill_queue_other_waiting_jobs"] == {"": 40}
    dropped = {metric.family.name: metric.dropped for metric in result.metrics}
    assert dropped["windmill_queue_waiting_jobs"] == dropped["windmill_queue_workers"] == 7
    assert dropped["windmill_workspace_waiting_jobs"] == 3


def test_with_room_for_all_nothing_is_left_out() -> None:
    found, _ = limited(queue([tag("a", 2), tag("b", 3)]), 2)
    assert found["windmill_queue_other_waiting_jobs"] == {"": 0}


def test_a_tag_keeps_its_place_against_one_of_about_the_same_size() -> None:
    part = queue([tag("old", 100), tag("new", 110)])
    assert limited(part, 1, previous=["old"])[1].tags == {"old"}
    assert limited(part, 1)[1].tags == {"new"}


def test_workspaces_are_limited_by_their_waiting_jobs() -> None:
    part = queue(workspaces=[WorkspaceWait(f"w{number}", number, NOW) for number in range(1, 8)])
    found, chosen = limited(part, 2)
    assert found["windmill_workspace_waiting_jobs"] == {"w6": 6, "w7": 7}
    assert chosen.waiting_workspaces == {"w6", "w7"}


def test_a_stale_reading_leaves_no_queue_families() -> None:
    found = exported(queue([tag("default", 9)]), age=31)
    assert not [name for name in found if name.startswith(("windmill_queue_", "windmill_workspace_"))]
