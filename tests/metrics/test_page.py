"""The page as prepared bytes: what is rendered again and when, what is left out, how large it gets."""

from __future__ import annotations

import gc
import gzip
import sys
import zlib

import pytest

from exporter.errors import DatabaseTimeout
from exporter.fairness.values import FairnessMode, RefreshOutcome, RefreshResult
from exporter.metrics.collect import Scope
from exporter.metrics.exposition import Exposition
from exporter.metrics.families import LIMITED
from exporter.metrics.page import MetricsPage
from exporter.queue.values import QueueSnapshot
from exporter.snapshot import Board, CollectorStatus
from tests.metrics.scenes import (
    MONOTONIC,
    SCOPE,
    Values,
    fairness,
    full_snapshot,
    own_metrics,
    parsed,
    queue,
    snapshot,
    tag,
)

BOTH = pytest.mark.parametrize("exposition", list(Exposition))


class Scraped:
    """A page over a board, on a clock that the test moves."""

    def __init__(self, scope: Scope = SCOPE) -> None:
        self.now = MONOTONIC
        self.board = Board(snapshot(up=False))
        self.own = own_metrics()
        self.page = MetricsPage(self.board, self.own, scope, lambda: self.now)

    def show(self, part: QueueSnapshot) -> None:
        """The queue loop has read something new."""
        self.board.current = snapshot(None, part)

    def read(self, exposition: Exposition = Exposition.OPENMETRICS) -> Values:
        """One scrape."""
        return parsed(self.page.body(exposition, gzipped=False), exposition)

    def waiting(self) -> dict[str, float]:
        """Waiting jobs by tag, as one scrape sees them."""
        family = "windmill_queue_waiting_jobs"
        return {labels[0][1]: number for (name, labels), number in self.read().items() if name == family}

    def dropped(self) -> dict[str, float]:
        """Dropped label values by family, as one scrape sees them."""
        family = "windmill_exporter_series_dropped"
        return {labels[0][1]: number for (name, labels), number in self.read().items() if name == family}


@pytest.fixture
def scraped() -> Scraped:
    return Scraped()


@BOTH
def test_gzip_and_plain_hold_the_same_page(scraped: Scraped, exposition: Exposition) -> None:
    scraped.board.current = full_snapshot()
    plain = scraped.page.body(exposition, gzipped=False)
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    assert inflater.decompress(scraped.page.body(exposition, gzipped=True)) == plain
    assert inflater.eof
    assert inflater.unused_data == b""


def test_only_openmetrics_ends_with_eof(scraped: Scraped) -> None:
    assert scraped.page.body(Exposition.OPENMETRICS, gzipped=False).endswith(b"\n# EOF\n")
    assert b"# EOF" not in scraped.page.body(Exposition.TEXT, gzipped=False)


def test_a_snapshot_is_collected_once_however_often_it_is_scraped(scraped: Scraped) -> None:
    scraped.read()
    first = scraped.page._collected
    for exposition in Exposition:
        scraped.now += 2
        scraped.page.body(exposition, gzipped=True)
    assert scraped.page._collected is first
    scraped.board.update_collector(CollectorStatus("queue", success=True))
    scraped.read()
    assert scraped.page._collected is not first


def test_a_second_scrape_is_answered_with_the_very_same_bytes(scraped: Scraped) -> None:
    first = scraped.page.body(Exposition.TEXT, gzipped=True)
    scraped.now += 0.9
    assert scraped.page.body(Exposition.TEXT, gzipped=True) is first


def test_a_new_snapshot_shows_at_the_next_scrape(scraped: Scraped) -> None:
    scraped.show(queue([tag("default", 3)]))
    assert scraped.waiting() == {"default": 3}
    scraped.show(queue([tag("default", 4)]))
    assert scraped.waiting() == {"default": 4}


def test_a_record_shows_at_the_next_scrape_and_requests_within_a_second(scraped: Scraped) -> None:
    won = ("windmill_fairness_refreshes_total", (("result", "won"),))
    route = (("route", "/metrics"), ("status_class", "2xx"))
    requests = ("windmill_exporter_http_request_duration_seconds_count", route)
    scraped.read()
    scraped.own.record_refresh(RefreshOutcome(RefreshResult.WON))
    assert scraped.read()[won] == 1
    scraped.own.observe_request("/metrics", 200, 0.01)
    scraped.now += 1.0
    assert scraped.read()[requests] == 1


def test_the_page_turns_stale_by_the_clock_alone(scraped: Scraped) -> None:
    scraped.board.current = full_snapshot()
    assert scraped.waiting()
    scraped.now += 31
    names = {name for name, _ in scraped.read()}
    assert not [name for name in names if name.startswith(("windmill_queue_waiting", "windmill_fairness_share"))]
    success = {
        labels: number for (name, labels), number in scraped.read().items() if name.endswith("collector_success")
    }
    assert success[("collector", "queue"),] == 0


def test_from_the_first_scrape_on_collectors_can_be_seen_to_fail(scraped: Scraped) -> None:
    """Field case F82: the database was never reached."""
    scraped.own.observe_collector("queue", 5.0, DatabaseTimeout("queue: no answer", reason="deadline"))
    found = scraped.read()
    for name in ("fairness", "queue", "retention"):
        assert found["windmill_exporter_collector_success", (("collector", name),)] == 0
        assert found["windmill_exporter_collector_last_success_timestamp_seconds", (("collector", name),)] == 0
    assert found["windmill_exporter_up", ()] == 0
    failed = (("collector", "queue"), ("reason", "deadline"))
    assert found["windmill_exporter_collector_failures_total", failed] == 1


def test_tags_come_and_go_without_a_hole_and_not_for_ever(scraped: Scraped) -> None:
    """Field case F74: no scrape sees fewer tags than the old and the new set; gone 900 s after the last backlog."""
    last_backlog: dict[str, float] = {}
    for step in range(120):
        scraped.now += 30
        waiting = [f"tag-{number}" for number in range(100) if (number * 7 + step) % 100 < 8]
        last_backlog |= dict.fromkeys(waiting, scraped.now)
        drained = [name for name, at in last_backlog.items() if name not in waiting and scraped.now - at < 900]
        before = set(scraped.waiting())
        scraped.show(queue([tag(name, 2) for name in waiting], drained=drained, observed_monotonic=scraped.now))
        after = scraped.waiting()
        assert set(after) == {*waiting, *drained}
        assert before - set(after) <= {name for name, at in last_backlog.items() if scraped.now - at >= 900}
        assert {name for name, number in after.items() if number == 0} == set(drained)
    scraped.now += 20 * 60
    assert scraped.waiting() == {}


def test_names_select_families_by_family_and_by_sample_name(scraped: Scraped) -> None:
    scraped.board.current = full_snapshot()
    wanted = {
        "windmill_queue_delay_seconds",
        "windmill_fairness_refreshes",
        "windmill_queue_samples_total",
        "windmill_exporter_collector_duration_seconds_sum",
        "windmill_exporter_series_dropped",
        "no_such_metric",
    }
    text = scraped.page.selected(Exposition.OPENMETRICS, wanted, gzipped=False)
    assert {name for name, _ in parsed(text, Exposition.OPENMETRICS)} == {
        "windmill_queue_delay_seconds",
        "windmill_fairness_refreshes_total",
        "windmill_queue_samples_total",
        "windmill_exporter_collector_duration_seconds_bucket",
        "windmill_exporter_collector_duration_seconds_count",
        "windmill_exporter_collector_duration_seconds_sum",
        "windmill_exporter_series_dropped",
    }
    assert gzip.decompress(scraped.page.selected(Exposition.OPENMETRICS, wanted, gzipped=True)) == text


def test_names_that_are_none_select_an_empty_page(scraped: Scraped) -> None:
    assert scraped.page.selected(Exposition.TEXT, {"x"}, gzipped=False) == b""
    assert scraped.page.selected(Exposition.OPENMETRICS, {"x"}, gzipped=False) == b"# EOF\n"


def test_dropped_series_are_counted_for_every_limited_family(scraped: Scraped) -> None:
    assert scraped.dropped() == dict.fromkeys(LIMITED, 0)
    scraped.show(queue([tag(f"t{number}", 1) for number in range(503)]))
    assert scraped.dropped()["windmill_queue_waiting_jobs"] == 3
    scraped.now += 31
    assert scraped.dropped() == dict.fromkeys(LIMITED, 0)


def test_without_cluster_the_page_is_about_this_process_only() -> None:
    alone = Scraped(Scope(FairnessMode.SHADOW, cluster=False))
    alone.board.current = full_snapshot()
    names = {name for name, _ in alone.read()}
    assert not [name for name in names if name.startswith("windmill_queue_waiting")]
    assert "windmill_exporter_up" in names
    assert "windmill_exporter_series_dropped" not in names


def test_two_replicas_of_one_database_show_the_same_cluster() -> None:
    """Field case F83: max = min = 9 on every replica, and no label of ours tells them apart."""
    replicas = [Scraped() for _ in range(3)]
    for number, replica in enumerate(replicas):
        replica.now += number
        replica.board.current = snapshot(fairness(), queue([tag("default", 9)], observed_monotonic=replica.now))
    pages = [
        {key: number for key, number in replica.read().items() if key[0].startswith(("windmill_f", "windmill_q"))}
        for replica in replicas
    ]
    assert pages[0] == pages[1] == pages[2]
    assert pages[0]["windmill_queue_waiting_jobs", (("tag", "default"),)] == 9


def crowd(round_number: int) -> QueueSnapshot:
    large = [tag(f"large-{number}", 1000) for number in range(5)]
    small = [tag(f"{round_number}-{number}-" + "\N{CRAB}" * 40, 1) for number in range(20_000)]
    return queue([*small, *large])


def test_twenty_thousand_tags_do_not_make_the_page_or_the_process_grow(scraped: Scraped) -> None:
    """Field case F80: the large tags stay, the rest is one number, the page stays small, memory stays flat."""
    blocks = []
    for round_number in range(10):
        scraped.show(crowd(round_number))
        assert len(scraped.page.body(Exposition.TEXT, gzipped=False)) < 2_000_000
        assert len(scraped.page.body(Exposition.OPENMETRICS, gzipped=True)) < 500_000
        scraped.board.current = snapshot()
        scraped.page.body(Exposition.TEXT, gzipped=False)
        gc.collect()
        blocks.append(sys.getallocatedblocks())
    assert max(blocks[2:]) - min(blocks[2:]) < 2_000


def test_the_large_tags_are_always_among_the_crowd(scraped: Scraped) -> None:
    """Field case F80: 500 tags at the most, everything else in one sum."""
    for round_number in range(2):
        scraped.show(crowd(round_number))
        waiting = scraped.waiting()
        assert len(waiting) == 500
        assert {f"large-{number}": 1000.0 for number in range(5)}.items() <= waiting.items()
        assert scraped.read()["windmill_queue_other_waiting_jobs", ()] == 20_005 - 500
        assert scraped.dropped()["windmill_queue_waiting_jobs"] == 20_005 - 500
