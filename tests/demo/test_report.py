"""What the demo prints is aligned, has units, and says "-" for what is not known."""

from __future__ import annotations

from exporter.demo.load import Load
from exporter.demo.measures import Waits
from exporter.demo.report import (
    Outcome,
    TenantRow,
    align,
    render_comparison,
    render_seconds,
    render_share,
    render_tenants,
    shares,
)
from exporter.fairness.values import (
    MICROS,
    FairnessMode,
    FairnessReading,
    FairnessSettings,
    FairnessSnapshot,
    Payload,
    ServiceTimes,
    WorkspaceUsage,
)

NO_WAITS = Waits(None, None, None)


def snapshot(payload: Payload, usage: dict[str, int] | None) -> FairnessSnapshot:
    """A snapshot with worker time by workspace in seconds; None: nothing was read."""
    reading = None
    if usage is not None:
        rows = tuple(WorkspaceUsage(name, seconds * MICROS, ServiceTimes()) for name, seconds in usage.items())
        reading = FairnessReading(read_at=0.0, by="demo", window_seconds=10, usage=rows)
    return FairnessSnapshot(
        mode=FairnessMode.ENFORCE,
        settings=FairnessSettings(enabled=True),
        now=0.0,
        observed_monotonic=0.0,
        in_force=payload,
        in_force_since={},
        payload_at=0.0,
        payload_age_seconds=0.0,
        reading=reading,
        would=None,
        refreshed_by="demo",
    )


def test_the_table_of_tenants_reads_like_this() -> None:
    rows = [
        TenantRow("noisy", 0.655, True, 1103, Waits(12.0, 61.26, 70.0)),
        TenantRow("quiet-1", 0.345, False, 2, Waits(0.0444, 0.9, 1.0)),
        TenantRow("research", None, False, 0, NO_WAITS),
    ]
    assert render_tenants(17.6, snapshot(Payload(("noisy",), 351), {}), rows) == (
        "18 s, p_c 0.0351\n"
        "tenant     share  capped  waiting  wait p50  wait p95\n"
        "noisy     65.5 %     yes     1103    12.0 s    61.3 s\n"
        "quiet-1   34.5 %      no        2     44 ms    900 ms\n"
        "research       -      no        0         -         -\n"
    )


def test_without_anybody_capped_there_is_no_admission_to_show() -> None:
    assert render_tenants(2, snapshot(Payload((), 5500), {}), []).startswith("2 s, p_c -\n")
    assert render_tenants(2, None, []).startswith("2 s, p_c -\n")


def test_the_comparison_has_one_column_a_rule() -> None:
    outcomes = [
        Outcome("fairness off", 1.0, Waits(20.3, 38.1, 39.7), 848),
        Outcome("duration-weighted", 0.693, Waits(0.354, 1.0, 1.2), 9489),
        Outcome("nothing ran", None, NO_WAITS, 0),
    ]
    text = render_comparison(Load(quiet_tenants=10), 7, 20, 60, outcomes)
    assert text == (
        "50 workers, seed 7. One noisy tenant with a standing backlog of 3.4 s jobs,\n"
        "10 quiet ones that ask for 30 % of the workers in 0.1 s jobs. Shares and waits from second 20 to 60;\n"
        "a job that was not started counts with its age.\n"
        "\n"
        "                         fairness off  duration-weighted  nothing ran\n"
        "noisy tenant's share          100.0 %             69.3 %            -\n"
        "quiet tenants' wait p50        20.3 s             354 ms            -\n"
        "quiet tenants' wait p95        38.1 s              1.0 s            -\n"
        "quiet tenants' wait p99        39.7 s              1.2 s            -\n"
        "completed jobs                    848               9489            0\n"
    )


def test_shares_are_parts_of_everybodys_worker_time() -> None:
    assert shares(snapshot(Payload(), {"noisy": 30, "quiet-1": 10})) == {"noisy": 0.75, "quiet-1": 0.25}


def test_without_a_reading_or_without_work_there_are_no_shares() -> None:
    assert shares(None) == {}
    assert shares(snapshot(Payload(), None)) == {}
    assert shares(snapshot(Payload(), {"noisy": 0})) == {}


def test_times_change_their_unit_at_a_second() -> None:
    assert [render_seconds(value) for value in (0.0, 0.9994, 1.0, 59.96, None)] == [
        "0 ms",
        "999 ms",
        "1.0 s",
        "60.0 s",
        "-",
    ]


def test_a_share_has_one_place() -> None:
    assert [render_share(value) for value in (0.0, 0.5555, 1.0, None)] == ["0.0 %", "55.5 %", "100.0 %", "-"]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert (
        align([("a", "b"), ("long name", "1"), ("c", "12345")])
        == "a              b\nlong name      1\nc          12345"
    )
