"""Pure: with which probability a pull may take a capped workspace's job.

In steady state a pull probability p gives the capped workspaces the share p D_c / (p D_c + (1 - p) D_u) of the worker
time, where D_c and D_u are the mean service times of capped and uncapped jobs. Solved for the target share t this is
p_c = t D_u / ((1 - t) D_c + t D_u).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import floor

from exporter.fairness.classify import classify
from exporter.fairness.values import (
    ADMIT_ALL_PPM,
    EPSILON_PERCENT,
    Admission,
    Decision,
    FairnessReading,
    FairnessSettings,
    Payload,
    ServiceTimes,
)

STALE_DECISION_SECONDS = 60.0


def target_share(max_percent: int) -> float:
    """t: the cap plus the hysteresis, as a ratio of at most 1."""
    return min(max_percent + EPSILON_PERCENT, 100) / 100


def admission_probability(target: float, capped: ServiceTimes, uncapped: ServiceTimes) -> float:
    """p_c for the target share t. Where a mean is undefined the formula is too, and p_c is t itself."""
    capped_mean, uncapped_mean = capped.mean_seconds, uncapped.mean_seconds
    if capped_mean is None or uncapped_mean is None:
        return target
    return target * uncapped_mean / ((1 - target) * capped_mean + target * uncapped_mean)


def admission_ppm(probability: float) -> int:
    """The probability in parts per 10,000, rounded half up, within 0..10,000."""
    return max(0, min(ADMIT_ALL_PPM, floor(probability * ADMIT_ALL_PPM + 0.5)))


def share_of_admission(probability: float, capped_mean_seconds: float, uncapped_mean_seconds: float) -> float:
    """The share equation: what the pull probability gives the capped workspaces in steady state, 0..1."""
    capped = probability * capped_mean_seconds
    return capped / (capped + (1 - probability) * uncapped_mean_seconds)


def admits(ppm: int, draw: int) -> bool:
    """Whether one pull may take a capped workspace's job; `draw` is uniform in 0..9999."""
    return draw < ppm


def decision_is_stale(age_seconds: float | None) -> bool:
    """Whether a decision is too old to hold anybody back: a stopped exporter must not leave a cap for ever."""
    return age_seconds is None or age_seconds > STALE_DECISION_SECONDS


def admission_of(payload: Payload, age_seconds: float | None, draw: int) -> Admission:
    """What one pull with `draw` (uniform in 0..9999) is told by a decision of that age (None: there never was one)."""
    if not payload.overloaded:
        return Admission.NOBODY_CAPPED
    if decision_is_stale(age_seconds):
        return Admission.STALE
    return Admission.ADMITTED if admits(payload.admission_ppm, draw) else Admission.EXCLUDED


def decide(reading: FairnessReading, settings: FairnessSettings) -> Decision:
    """The capped set and p_c that one reading of the cluster asks for under `settings`."""
    capped = classify(
        {usage.workspace: usage.worker_micros for usage in reading.usage},
        reading.total_micros,
        max_percent=settings.max_percent,
        min_total_worker_seconds=settings.min_total_worker_seconds,
    )
    members = frozenset(capped)
    capped_service = _pooled(usage.service for usage in reading.usage if usage.workspace in members)
    uncapped_service = _pooled(
        [reading.other_service, *(usage.service for usage in reading.usage if usage.workspace not in members)]
    )
    target = target_share(settings.max_percent)
    probability = admission_probability(target, capped_service, uncapped_service)
    capped_mean, uncapped_mean = capped_service.mean_seconds, uncapped_service.mean_seconds
    expected = None
    if capped_mean is not None and uncapped_mean is not None:
        expected = share_of_admission(probability, capped_mean, uncapped_mean)
    return Decision(
        payload=Payload(capped, admission_ppm(probability)),
        target_share=target,
        admission=probability,
        expected_share=expected,
        capped_service=capped_service,
        uncapped_service=uncapped_service,
    )


def _pooled(services: Iterable[ServiceTimes]) -> ServiceTimes:
    jobs, seconds = 0, 0.0
    for service in services:
        jobs += service.jobs
        seconds += service.seconds
    return ServiceTimes(jobs, seconds)
