"""The first sentence says the state in words with numbers, whatever the state is."""

from __future__ import annotations

from dataclasses import replace

from exporter.fairness.settings import ENABLED as ENABLED_SETTING
from exporter.fairness.values import (
    FairnessMode,
    FairnessSettings,
    Payload,
    ServiceTimes,
    SettingSource,
    WorkspaceUsage,
)
from exporter.snapshot import CollectorStatus, Snapshot
from exporter.web.status.sentence import edition_note
from exporter.web.status.values import Clocks
from tests.metrics.scenes import MONOTONIC, NOISY, NOW, QUIET, fairness, queue, snapshot, tag
from tests.web.status.scenes import ENABLED, failing, first_line, further_lines, in_shadow

SHADOW = FairnessMode.SHADOW
WOULD = "noisy, which holds 72 % of the workers, would be capped at 50 % and admitted with probability 3.5 %."


def test_a_capped_workspace_is_named_with_its_share_the_cap_since_when_and_the_probability() -> None:
    state = snapshot(fairness(settings=ENABLED))
    assert first_line(state) == (
        "noisy holds 72 % of the workers and is capped at 50 % since 07:59 UTC; "
        "its pulls are admitted with probability 5.2 %."
    )


def test_several_capped_workspaces_share_one_sentence() -> None:
    usage = [NOISY, replace(NOISY, workspace="b"), QUIET]
    state = snapshot(fairness(usage, settings=ENABLED, in_force=Payload(("noisy", "b"), 4_000)))
    assert first_line(state) == (
        "noisy and b together hold 84 % of the workers and are capped at 50 % each; "
        "their pulls are admitted with probability 40 %."
    )


def test_without_a_fresh_reading_of_the_cluster_no_share_is_claimed() -> None:
    state = snapshot(fairness(settings=ENABLED, with_reading=False))
    assert first_line(state).startswith("noisy is capped at 50 % since")


def test_the_share_that_the_probability_leads_to_is_explained() -> None:
    settings = FairnessSettings(enabled=True, max_percent=60)
    assert further_lines(snapshot(fairness(settings=settings)))[0] == (
        "Its jobs take 34 s on average and others take 1 s: at this probability it gets 65 % of the workers "
        "while others can use the rest."
    )


def test_nobody_capped_names_the_largest_and_the_cap() -> None:
    usage = [replace(NOISY, worker_micros=3_100_000), replace(QUIET, worker_micros=6_900_000 // 2)]
    usage = sorted([*usage, replace(QUIET, workspace="c", worker_micros=3_450_000)], key=lambda one: -one.worker_micros)
    state = snapshot(fairness(usage, settings=ENABLED, in_force=Payload()))
    assert first_line(state) == "Nobody is capped: quiet holds the most, 34 % of the workers; the cap is 50 %."


def test_below_the_floor_both_numbers_are_said() -> None:
    usage = [replace(NOISY, worker_micros=1_200_000)]
    state = snapshot(fairness(usage, settings=ENABLED, in_force=Payload()))
    assert first_line(state) == (
        "Nobody is capped: everybody together used 1.2 worker-seconds in 10 s, below the floor of 4."
    )


def test_an_empty_cluster_without_a_floor_is_no_division_by_zero() -> None:
    settings = FairnessSettings(enabled=True, min_total_worker_seconds=0)
    state = snapshot(fairness([], settings=settings, in_force=Payload()))
    assert first_line(state) == "Nobody is capped: no job held a worker in the last 10 s."


def test_disabled_says_by_what_and_what_would_happen_otherwise() -> None:
    state = snapshot(in_shadow(settings=FairnessSettings()))
    assert first_line(state, SHADOW) == (
        "Nobody is capped: fairness is disabled by Windmill's setting workspace_fairness_enabled."
    )
    assert further_lines(state, SHADOW) == [f"If it were enabled, {WOULD}"]


def test_disabled_by_our_own_file_names_the_key() -> None:
    settings = FairnessSettings(sources={ENABLED_SETTING: SettingSource.FILE})
    state = snapshot(fairness(settings=settings, in_force=Payload()))
    assert first_line(state) == (
        "Nobody is capped: fairness is disabled by this exporter's configuration (fairness.settings.enabled is false)."
    )


def test_shadow_says_what_it_would_do_beside_another_writer() -> None:
    state = snapshot(in_shadow(payload_age_seconds=1.0))
    assert first_line(state, SHADOW) == "Nobody is capped: noisy holds the most, 72 % of the workers; the cap is 50 %."
    assert further_lines(state, SHADOW) == [f"This exporter only watches; if it decided, {WOULD}"]


def test_shadow_that_agrees_with_the_other_writer_says_so() -> None:
    state = snapshot(in_shadow(payload_age_seconds=1.0, in_force=Payload(("noisy",), 352)))
    assert "This exporter only watches; it would decide the same." in further_lines(state, SHADOW)


def test_shadow_that_would_cap_nobody_says_so() -> None:
    usage = [replace(QUIET, workspace=name) for name in "abc"]
    state = snapshot(in_shadow(usage=usage, payload_age_seconds=1.0, in_force=Payload(("a",), 352)))
    assert "This exporter only watches; if it decided, nobody would be capped now." in further_lines(state, SHADOW)


def test_several_that_would_be_capped_hold_it_together() -> None:
    usage = [NOISY, replace(NOISY, workspace="b")]
    [line] = further_lines(snapshot(in_shadow(usage=usage, payload_age_seconds=1.0)), SHADOW)
    assert "b and noisy, which together hold 100 % of the workers, would be capped at 50 %" in line


def test_enforcing_says_nothing_of_what_it_would_do() -> None:
    assert further_lines(snapshot(fairness(settings=ENABLED, in_force=Payload()))) == []


def test_a_stale_decision_holds_nobody_back_and_says_how_old_it_is() -> None:
    state = snapshot(fairness(settings=ENABLED, payload_age_seconds=240.0))
    assert first_line(state) == (
        "noisy would be capped, but the last decision is 4 min old (07:56 UTC), "
        "and after 60 s a decision holds nobody back."
    )
    state = snapshot(fairness(settings=ENABLED, payload_age_seconds=240.0, in_force=Payload()))
    assert first_line(state).startswith("Nobody is capped: the last decision is 4 min old")


def test_enabled_without_any_decision_says_so() -> None:
    assert first_line(snapshot(in_shadow()), SHADOW) == (
        "Nobody is capped: fairness is enabled, but no decision has been stored yet."
    )


def test_off_says_off() -> None:
    assert first_line(Snapshot((CollectorStatus("queue", True, NOW),)), FairnessMode.OFF) == (
        "Fairness is off: this exporter neither reads shares nor caps anybody."
    )


def test_a_start_is_no_failure() -> None:
    assert first_line(Snapshot((CollectorStatus("fairness"),))) == (
        "Nothing is known yet: the exporter has just started and is reading the database."
    )


def test_a_database_that_is_away_is_named_with_the_time_of_the_last_success() -> None:
    state = failing("cannot connect", "unreachable", "fairness", up=False, last=NOW - 400)
    assert first_line(state) == (
        "The present state is unknown: the exporter cannot reach the database; it last could at 07:53 UTC, 6 min ago."
    )
    state = failing("cannot connect", "unreachable", "fairness", up=False, last=None)
    assert first_line(state) == "The present state is unknown: the exporter cannot reach the database."


def test_a_failing_collector_beside_a_working_database_is_told_apart() -> None:
    state = failing("no privilege", "missing_privilege", "fairness", last=None)
    assert first_line(state) == "The present state is unknown: the exporter cannot read how the workers are shared."


def test_the_queue_is_summed_up_with_its_longest_head_delay_and_the_tags_that_nobody_takes() -> None:
    tags = [tag("bun", 1_000, running=30, waited=192), tag("gpu", 400, workers=0, waited=60), tag("idle", running=1)]
    state = snapshot(None, queue(tags, other_tags=3, other_waiting=2, other_running=1))
    assert further_lines(state, FairnessMode.OFF) == [
        "1,402 jobs wait and 32 run; the longest head delay is 3 min 12 s, in bun. No worker takes gpu now."
    ]


def test_a_queue_without_backlog_is_said_to_be_one() -> None:
    assert further_lines(snapshot(None, queue([tag("a", running=3)])), FairnessMode.OFF) == ["No job waits; 3 run."]
    assert further_lines(snapshot(None, queue()), FairnessMode.OFF) == ["No job waits and none runs."]
    only_others = queue(other_tags=1, other_waiting=1)
    assert further_lines(snapshot(None, only_others), FairnessMode.OFF) == ["1 job waits and 0 run."]


def test_a_reading_too_old_to_speak_of_the_present_is_not_told() -> None:
    old = snapshot(fairness(settings=ENABLED), queue([tag("a", 3)]))
    late = Clocks(MONOTONIC + 31, NOW + 31)
    assert first_line(old, clocks=late).startswith("noisy is capped at 50 %")


def test_ages_go_on_between_two_readings() -> None:
    state = snapshot(fairness(settings=ENABLED, payload_age_seconds=55.0))
    assert "is capped" in first_line(state)
    assert "1 min 5 s old" in first_line(state, clocks=Clocks(MONOTONIC + 10, NOW + 10))


def test_long_names_are_cut_in_sentences() -> None:
    usage = WorkspaceUsage("w" * 255, 1_000_000, ServiceTimes())
    settings = FairnessSettings(enabled=True, min_total_worker_seconds=0)
    state = snapshot(fairness([usage], settings=settings, in_force=Payload(("w" * 255,), 10)))
    assert "w" * 39 + "… holds 100 %" in first_line(state)


def test_the_community_edition_is_told_what_it_can_do() -> None:
    assert "Community edition cannot switch fairness on" in edition_note(in_shadow(settings=FairnessSettings()))
    pinned = FairnessSettings(enabled=True, sources={ENABLED_SETTING: SettingSource.FILE})
    assert "binds only dispatchers that ask this exporter" in edition_note(fairness(settings=pinned))
    assert edition_note(fairness(settings=ENABLED)) == ""
    assert edition_note(None) == ""
