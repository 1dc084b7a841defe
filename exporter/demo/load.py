"""Pure: what the demo's tenants ask of the cluster, the same for the same seed.

One noisy tenant keeps a standing backlog of long jobs; quiet tenants send short jobs as one Poisson process; and a few
jobs carry a tag that no worker serves, which pile up.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

NOISY = "noisy"
NOISY_JOB_SECONDS = 3.4
QUIET_JOB_SECONDS = 0.1
# Equal durations would free all workers in one beat, which no real cluster does.
DURATION_SPREAD = 0.2
BACKLOG_MARGIN = 1.25
SERVED_TAGS = ("bun", "deno", "python3")
UNSERVED_WORKSPACE = "research"
UNSERVED_TAG = "gpu"
UNSERVED_JOBS_PER_SECOND = 0.5


@dataclass(frozen=True, slots=True)
class Load:
    """`quiet_percent` is the part of all workers that the quiet tenants ask for together, in percent.

    The noisy tenant's backlog would keep all workers busy for `backlog_seconds` and more. In a comparison these are the
    seconds of the whole run, so that the backlog's head is older than any quiet job however the pulls go.
    """

    workers: int = 50
    quiet_tenants: int = 4
    quiet_percent: float = 30.0
    backlog_seconds: float = 60.0

    @property
    def quiet_workspaces(self) -> tuple[str, ...]:
        """The names of the quiet tenants."""
        return tuple(f"quiet-{number}" for number in range(1, self.quiet_tenants + 1))

    @property
    def quiet_jobs_per_second(self) -> float:
        """Arrivals of all quiet tenants together."""
        return self.workers * self.quiet_percent / 100 / QUIET_JOB_SECONDS

    @property
    def backlog(self) -> int:
        """How many jobs of the noisy tenant wait at any time."""
        return ceil(self.workers * self.backlog_seconds * BACKLOG_MARGIN / NOISY_JOB_SECONDS)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One job: when it arrives (seconds from the start), whose it is, its tag, and how long it will run."""

    at_seconds: float
    workspace: str
    tag: str
    duration_seconds: float


def arrivals(load: Load, seed: int) -> Iterator[Arrival]:
    """The jobs of everybody but the noisy tenant, in order of time, without end."""
    source = random.Random(f"arrivals {seed}")  # noqa: S311 -- a repeatable load, not a secret
    rate = load.quiet_jobs_per_second + UNSERVED_JOBS_PER_SECOND
    at_seconds = 0.0
    while True:
        at_seconds += source.expovariate(rate)
        duration_seconds = _duration(source, QUIET_JOB_SECONDS)
        if source.random() * rate < UNSERVED_JOBS_PER_SECOND:
            yield Arrival(at_seconds, UNSERVED_WORKSPACE, UNSERVED_TAG, duration_seconds)
        else:
            workspace, tag = source.choice(load.quiet_workspaces), source.choice(SERVED_TAGS)
            yield Arrival(at_seconds, workspace, tag, duration_seconds)


def flood(seed: int) -> Iterator[Arrival]:
    """The noisy tenant's jobs without end. They are due at once; the backlog takes as many as it lacks."""
    source = random.Random(f"flood {seed}")  # noqa: S311 -- a repeatable load, not a secret
    while True:
        yield Arrival(0.0, NOISY, source.choice(SERVED_TAGS), _duration(source, NOISY_JOB_SECONDS))


def _duration(source: random.Random, mean_seconds: float) -> float:
    return mean_seconds * source.uniform(1 - DURATION_SPREAD, 1 + DURATION_SPREAD)
