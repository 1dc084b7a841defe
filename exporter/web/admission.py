"""`GET /api/admission`: whether a dispatcher's next pulls may take jobs of capped workspaces."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from exporter.fairness.admission import admission_of, decision_is_stale
from exporter.fairness.state import decision_age_seconds
from exporter.fairness.values import ADMIT_ALL_PPM, Admission, FairnessMode, FairnessSnapshot, Payload
from exporter.snapshot import Snapshot
from exporter.web import keys
from exporter.web.answers import error_answer, json_answer
from exporter.web.fairness import mode_of, reading_age_seconds

MAX_PULLS = 1000
PULLS = re.compile(r"[1-9]\d{0,3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Draws:
    """What one decision says to some pulls.

    `admit` holds one word for each pull; where it is false the pull leaves `capped` out. The first pull once more, for
    those who ask for one: `admit_capped`, and `exclude`, which is empty when it admits.
    """

    admit_capped: bool
    exclude: tuple[str, ...]
    admission_ppm: int
    age_seconds: float | None
    admit: tuple[bool, ...]
    capped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AdmissionAnswer:
    """The body of the answer. `stale`: the decision in force is over 60 s old and holds nobody back any more.

    `would`, in shadow alone: what enforcing would have said to the same draws.
    """

    admit_capped: bool
    exclude: tuple[str, ...]
    admission_ppm: int
    age_seconds: float | None
    admit: tuple[bool, ...]
    capped: tuple[str, ...]
    mode: FairnessMode | None
    stale: bool
    would: Draws | None


def answer_pulls(
    snapshot: Snapshot, draws: Sequence[int], now_monotonic: float
) -> tuple[AdmissionAnswer, tuple[Admission, ...]]:
    """The answer to one pull for each of `draws` (uniform in 0..9999, at least one), and its reasons. Pure."""
    fairness, mode = snapshot.fairness, mode_of(snapshot)
    age = None if fairness is None else decision_age_seconds(fairness, now_monotonic)
    would = None
    if fairness is not None and mode is FairnessMode.ENFORCE:
        told, reasons = _draw(fairness.in_force, age, draws)
    else:
        told, reasons = _draw(Payload(), age, draws)
        if mode in {FairnessMode.OFF, FairnessMode.SHADOW}:
            reasons = (Admission(mode.value),) * len(draws)
        if fairness is not None and mode is FairnessMode.SHADOW:
            would = _would(fairness, draws, now_monotonic)
    answer = AdmissionAnswer(
        admit_capped=told.admit_capped,
        exclude=told.exclude,
        admission_ppm=told.admission_ppm,
        age_seconds=told.age_seconds,
        admit=told.admit,
        capped=told.capped,
        mode=mode,
        stale=_is_stale(fairness, mode, age),
        would=would,
    )
    return answer, reasons


async def admission(request: web.Request) -> web.Response:
    """`pulls` (1 to 1000, default 1) asks for as many independent draws."""
    pulls = parse_pulls(request.query.getall("pulls", ["1"]))
    if pulls is None:
        return error_answer(400, "bad_request", f"pulls: expected an integer from 1 to {MAX_PULLS}, once.")
    draw, clock = request.app[keys.DRAW], request.app[keys.MONOTONIC]
    draws = [draw(ADMIT_ALL_PPM) for _ in range(pulls)]
    answer, reasons = answer_pulls(request.app[keys.BOARD].current, draws, clock())
    for reason, number in Counter(reasons).items():
        request.app[keys.OWN_METRICS].count_admissions(reason, number)
    return json_answer(answer)


def parse_pulls(texts: Sequence[str]) -> int | None:
    """The number of pulls, or None when it is not given as one integer from 1 to 1000."""
    if len(texts) != 1 or not PULLS.fullmatch(texts[0]):
        return None
    return int(texts[0]) if int(texts[0]) <= MAX_PULLS else None


def _draw(payload: Payload, age_seconds: float | None, draws: Sequence[int]) -> tuple[Draws, tuple[Admission, ...]]:
    reasons = tuple(admission_of(payload, age_seconds, draw) for draw in draws)
    admit = tuple(reason is not Admission.EXCLUDED for reason in reasons)
    binding = () if Admission.STALE in reasons else payload.overloaded
    told = Draws(
        admit_capped=admit[0],
        exclude=() if admit[0] else binding,
        admission_ppm=payload.admission_ppm,
        age_seconds=age_seconds,
        admit=admit,
        capped=binding,
    )
    return told, reasons


def _would(fairness: FairnessSnapshot, draws: Sequence[int], now_monotonic: float) -> Draws | None:
    if fairness.would is None:
        return None
    return _draw(fairness.would.payload, reading_age_seconds(fairness, now_monotonic), draws)[0]


def _is_stale(fairness: FairnessSnapshot | None, mode: FairnessMode | None, age_seconds: float | None) -> bool:
    if mode is FairnessMode.OFF:
        return False
    return fairness is None or (fairness.settings.enabled and decision_is_stale(age_seconds))
