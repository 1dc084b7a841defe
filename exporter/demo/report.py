"""Pure: what the demo prints. Shares are 0..1, times are seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exporter.demo.load import NOISY_JOB_SECONDS, QUIET_JOB_SECONDS, UNSERVED_WORKSPACE, Load
from exporter.demo.measures import Waits
from exporter.fairness.values import ADMIT_ALL_PPM, FairnessSnapshot

UNKNOWN = "-"


@dataclass(frozen=True, slots=True)
class TenantRow:
    """One tenant now: its share of the worker time as the service measured it, and its jobs' waiting of late."""

    workspace: str
    share: float | None
    capped: bool
    waiting_jobs: int
    waits: Waits


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of the comparison, named after its rule."""

    name: str
    capped_share: float | None
    waits: Waits
    completed_jobs: int


def shares(snapshot: FairnessSnapshot | None) -> dict[str, float]:
    """The share of each workspace in the last reading; empty when nothing was read or nothing ran."""
    reading = None if snapshot is None else snapshot.reading
    if reading is None or not reading.total_micros:
        return {}
    return {usage.workspace: usage.worker_micros / reading.total_micros for usage in reading.usage}


def render_introduction(load: Load, max_percent: int) -> str:
    """What the tables below it show, for somebody who sees them for the first time."""
    return (
        f"{load.workers} workers. noisy has a standing backlog of {NOISY_JOB_SECONDS:g} s jobs; "
        f"{load.quiet_tenants} quiet tenants ask for {load.quiet_percent:g} % of the workers in\n"
        f"{QUIET_JOB_SECONDS:g} s jobs; no worker serves the tag of {UNSERVED_WORKSPACE}'s jobs. "
        f"Who holds {max_percent} % or more is capped: a pull then takes\n"
        "one of its jobs with probability p_c only, unless nobody else has any. So its share settles at what the\n"
        "others leave over, and their waits fall. Shares of the last 10 s, waits of the last 30 s.\n"
    )


def render_tenants(at_seconds: float, snapshot: FairnessSnapshot | None, rows: Sequence[TenantRow]) -> str:
    """The table that the live demo prints every few seconds."""
    admission = UNKNOWN
    if snapshot is not None and snapshot.in_force.overloaded:
        admission = f"{snapshot.in_force.admission_ppm / ADMIT_ALL_PPM:.4f}"
    head = ("tenant", "share", "capped", "waiting", "wait p50", "wait p95")
    cells = [
        (
            row.workspace,
            render_share(row.share),
            "yes" if row.capped else "no",
            str(row.waiting_jobs),
            render_seconds(row.waits.p50_seconds),
            render_seconds(row.waits.p95_seconds),
        )
        for row in rows
    ]
    return f"{at_seconds:.0f} s, p_c {admission}\n{align([head, *cells])}\n"


def render_comparison(load: Load, seed: int, since: float, until: float, outcomes: Sequence[Outcome]) -> str:
    """The three runs side by side."""
    lines = [
        ("", *(outcome.name for outcome in outcomes)),
        ("noisy tenant's share", *(render_share(outcome.capped_share) for outcome in outcomes)),
        ("quiet tenants' wait p50", *(render_seconds(outcome.waits.p50_seconds) for outcome in outcomes)),
        ("quiet tenants' wait p95", *(render_seconds(outcome.waits.p95_seconds) for outcome in outcomes)),
        ("quiet tenants' wait p99", *(render_seconds(outcome.waits.p99_seconds) for outcome in outcomes)),
        ("completed jobs", *(str(outcome.completed_jobs) for outcome in outcomes)),
    ]
    return (
        f"{load.workers} workers, seed {seed}. "
        f"One noisy tenant with a standing backlog of {NOISY_JOB_SECONDS:g} s jobs,\n"
        f"{load.quiet_tenants} quiet ones that ask for {load.quiet_percent:g} % of the workers in "
        f"{QUIET_JOB_SECONDS:g} s jobs. Shares and waits from second {since:g} to {until:g};\n"
        f"a job that was not started counts with its age.\n\n{align(lines)}\n"
    )


def align(lines: Sequence[Sequence[str]]) -> str:
    """Columns of equal width: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if position == 0 else cell.rjust(width)
            for position, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def render_share(share: float | None) -> str:
    """A share in percent."""
    return UNKNOWN if share is None else f"{share * 100:.1f} %"


def render_seconds(seconds: float | None) -> str:
    """A time in seconds, or in milliseconds below one."""
    if seconds is None:
        return UNKNOWN
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
