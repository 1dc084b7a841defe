"""What is wrong is said once, by name, with what to do."""

from __future__ import annotations

import re
from dataclasses import replace

import exporter.errors
from exporter.errors import DatabaseError, DatabaseTimeout, DatabaseUnavailable, MissingCapability, StatementFailed
from exporter.fairness.values import FairnessMode
from exporter.metrics.freshness import freshness
from exporter.snapshot import CollectorStatus, Snapshot
from exporter.web.server import CONDITION
from exporter.web.status.advice import BY_CONDITION, BY_REASON
from exporter.web.status.troubles import collector_rows, troubles
from exporter.web.status.values import Clocks, Health, Trouble
from tests.metrics.scenes import MONOTONIC, NOW, fairness, full_snapshot, queue, snapshot
from tests.sources import PROJECT
from tests.web.status.scenes import CLOCKS, failing

GRANT = 'role "exporter" lacks privileges on public.v2_job: GRANT SELECT (id, kind) ON public.v2_job TO exporter'
UNREAD = (Trouble(("this page",), "the last transitions cannot be read", ""),)


def found(state: Snapshot, conditions: dict[str, str] | None = None, now: float = MONOTONIC) -> tuple[Trouble, ...]:
    return troubles(state, freshness(state, FairnessMode.ENFORCE, now), conditions or {}, UNREAD)


def test_nothing_wrong_is_nothing_said() -> None:
    state = full_snapshot()
    assert troubles(state, freshness(state, FairnessMode.ENFORCE, MONOTONIC), {}, ()) == ()


def test_a_missing_grant_is_named_with_its_statement_and_what_to_do_with_it() -> None:
    [trouble, _] = found(failing(GRANT, "missing_privilege", "fairness"))
    assert trouble.concerns == ("fairness",)
    assert "GRANT SELECT (id, kind) ON public.v2_job TO exporter" in trouble.sentence
    assert "as the owner of the table" in trouble.advice


def test_a_database_that_is_away_is_one_trouble_of_all_collectors_and_the_only_one() -> None:
    [trouble] = found(failing("cannot connect to db:5432", "unreachable", "fairness", "queue", "retention", up=False))
    assert trouble.concerns == ("fairness", "queue", "retention")
    assert "host and port" in trouble.advice


def test_conditions_are_told_once_with_their_own_advice() -> None:
    state = failing(GRANT, "missing_privilege", "fairness")
    conditions = {"fairness": GRANT, "long_tags": "2 tags are too long", "unheard_of": "something new"}
    by_name = {trouble.concerns: trouble.advice for trouble in found(state, conditions)}
    assert by_name.keys() == {("fairness",), ("long tags",), ("unheard of",), ("this page",)}
    assert by_name["long tags",] == BY_CONDITION["long_tags"]
    assert by_name["unheard of",] == ""


def test_a_reading_that_nobody_renews_is_a_trouble_although_the_collector_succeeds() -> None:
    state = full_snapshot()
    later = found(state, now=MONOTONIC + 31)
    assert [trouble.sentence for trouble in later][:2] == [
        "The last reading of fairness is too old to be shown.",
        "The last reading of queue is too old to be shown.",
    ]


def test_every_reason_an_error_can_have_comes_with_advice() -> None:
    texts = [kind.__doc__ or "" for kind in (DatabaseUnavailable, DatabaseTimeout, MissingCapability, StatementFailed)]
    listed = [re.search(r"Reasons: ([a-z_,\s()A-Z]+?)\.", text) for text in texts]
    reasons = {
        word for match in listed if match for word in re.findall(r"\b[a-z_]+\b", re.sub(r"\(.*?\)", "", match[1]))
    }
    assert len(reasons) > 15
    assert reasons == set(BY_REASON)
    assert issubclass(DatabaseUnavailable, DatabaseError)
    assert exporter.errors.__doc__


def test_every_condition_that_the_service_raises_comes_with_advice() -> None:
    sources = [path.read_text() for path in (PROJECT / "exporter").rglob("*.py")]
    calls = r"(?:raise_problem|_report)\(\s*\"([a-z_]+)\""
    raised = {key for source in sources for key in re.findall(calls, source)} | {CONDITION}
    assert {"settings", "audit", "long_tags"} <= raised
    assert raised <= set(BY_CONDITION)


def test_each_collector_has_a_row_with_its_health_and_its_last_success() -> None:
    statuses = (
        CollectorStatus("fairness", True, NOW - 2),
        CollectorStatus("queue", False, NOW - 60, "gone", "missing_table"),
        CollectorStatus("retention"),
    )
    state = replace(snapshot(fairness(), queue()), collectors=statuses)
    rows = collector_rows(state, freshness(state, FairnessMode.ENFORCE, MONOTONIC), CLOCKS)
    assert [(row.name, row.health) for row in rows] == [
        ("fairness", Health.WORKING),
        ("queue", Health.FAILING),
        ("retention", Health.STARTING),
    ]
    assert [row.last_success and row.last_success.age_seconds for row in rows] == [2.0, 60.0, None]
    assert all(row.purpose for row in rows)


def test_a_stale_reading_shows_in_the_row_too() -> None:
    state = full_snapshot()
    rows = collector_rows(
        state, freshness(state, FairnessMode.ENFORCE, MONOTONIC + 31), Clocks(MONOTONIC + 31, NOW + 31)
    )
    assert [row.health for row in rows] == [Health.STALE, Health.STALE, Health.WORKING]
