"""Pure: the state in words with numbers, for the first line of the page."""

from __future__ import annotations

from collections.abc import Sequence

from exporter.fairness.admission import share_of_admission
from exporter.fairness.settings import ENABLED
from exporter.fairness.state import decision_age_seconds
from exporter.fairness.values import (
    ADMIT_ALL_PPM,
    MICROS,
    Decision,
    FairnessReading,
    FairnessSnapshot,
    FairnessState,
    SettingSource,
)
from exporter.metrics.fairness import shows_would
from exporter.metrics.freshness import Freshness
from exporter.snapshot import Snapshot
from exporter.web.status.values import Clocks
from exporter.web.status.wording import (
    Name,
    Sentence,
    ago,
    clock,
    count,
    counted,
    duration,
    enumerated,
    mean,
    percent,
    seconds_of_work,
    shortened,
)


def headline(snapshot: Snapshot, fresh: Freshness, clocks: Clocks) -> Sentence:
    """What is the case with fairness now."""
    fairness, state = snapshot.fairness, fresh.state
    if state is FairnessState.OFF:
        return ("Fairness is off: this exporter neither reads shares nor caps anybody.",)
    if state is FairnessState.FAILED or fairness is None:
        return _unknown(snapshot, clocks)
    if state is FairnessState.STALE:
        return _stale(fairness, clocks)
    reading = fairness.reading if fresh.usage else None
    if state is FairnessState.CAPPING:
        return _capping(fairness, reading, clocks)
    return ("Nobody is capped", *_why_nobody(fairness, reading, state))


def remarks(snapshot: Snapshot, fresh: Freshness) -> tuple[Sentence, ...]:
    """What this exporter would do, and what the queue looks like."""
    found = [_expected(snapshot, fresh), _would(snapshot, fresh), _queue(snapshot, fresh)]
    return tuple(sentence for sentence in found if sentence)


def edition_note(fairness: FairnessSnapshot | None) -> str:
    """Windmill's setting exists in its Enterprise edition only (a pinned one binds our dispatchers); or nothing."""
    if fairness is None:
        return ""
    pinned = fairness.settings.sources.get(ENABLED) is SettingSource.FILE
    if not fairness.settings.enabled and not pinned:
        return (
            "Windmill's Community edition cannot switch fairness on. There, set fairness.settings.enabled: true in "
            "this exporter's configuration; the cap then binds only dispatchers that ask this exporter."
        )
    if fairness.settings.enabled and pinned:
        return (
            "Fairness is switched on by this exporter's configuration. Workers of Windmill's Community edition ignore "
            "the cap: it binds only dispatchers that ask this exporter."
        )
    return ""


def _unknown(snapshot: Snapshot, clocks: Clocks) -> Sentence:
    status = snapshot.collector("fairness")
    if status is None or (status.problem is None and status.last_success_epoch is None):
        return ("Nothing is known yet: the exporter has just started and is reading the database.",)
    why = "cannot read how the workers are shared" if snapshot.database_up else "cannot reach the database"
    if status.last_success_epoch is None:
        return (f"The present state is unknown: the exporter {why}.",)
    age = clocks.epoch - status.last_success_epoch
    last = f"it last could at {clock(status.last_success_epoch, age)}, {ago(age)}"
    return (f"The present state is unknown: the exporter {why}; {last}.",)


def _where_disabled(fairness: FairnessSnapshot) -> str:
    if fairness.settings.sources.get(ENABLED) is SettingSource.FILE:
        return "this exporter's configuration (fairness.settings.enabled is false)"
    return "Windmill's setting workspace_fairness_enabled"


def _stale(fairness: FairnessSnapshot, clocks: Clocks) -> Sentence:
    age = decision_age_seconds(fairness, clocks.monotonic)
    if age is None or fairness.payload_at is None:
        return ("Nobody is capped: fairness is enabled, but no decision has been stored yet.",)
    made = f"the last decision is {duration(age)} old ({clock(fairness.payload_at, age)})"
    ending = f"{made}, and after 60\u00a0s a decision holds nobody back."
    if not fairness.in_force.overloaded:
        return (f"Nobody is capped: {ending}",)
    return (*_names(fairness.in_force.overloaded), f" would be capped, but {ending}")


def _capping(fairness: FairnessSnapshot, reading: FairnessReading | None, clocks: Clocks) -> Sentence:
    capped, several = fairness.in_force.overloaded, len(fairness.in_force.overloaded) > 1
    held = "" if reading is None else _holds(capped, reading) + " and "
    since = ""
    if not several and capped[0] in fairness.in_force_since:
        at = fairness.in_force_since[capped[0]]
        since = f" since {clock(at, fairness.now - at + clocks.monotonic - fairness.observed_monotonic)}"
    chance = percent(fairness.in_force.admission_ppm / ADMIT_ALL_PPM)
    cap = f"{fairness.settings.max_percent}\u00a0%{' each' if several else ''}"
    verb, pulls = ("are", "their pulls are") if several else ("is", "its pulls are")
    ending = f"{held}{verb} capped at {cap}{since}; {pulls} admitted with probability {chance}."
    return (*_names(capped), f" {ending}")


def _why_nobody(fairness: FairnessSnapshot, reading: FairnessReading | None, state: FairnessState) -> Sentence:
    if state is FairnessState.DISABLED:
        return (f": fairness is disabled by {_where_disabled(fairness)}.",)
    if reading is None:
        return (".",)
    return (
        (_below_the_floor(fairness, reading),) if state is FairnessState.IDLE else (": ", *_largest(fairness, reading))
    )


def _below_the_floor(fairness: FairnessSnapshot, reading: FairnessReading) -> str:
    used = seconds_of_work(reading.total_micros / MICROS)
    floor = count(fairness.settings.min_total_worker_seconds)
    window = duration(reading.window_seconds)
    return f": everybody together used {used} worker-seconds in {window}, below the floor of {floor}."


def _largest(fairness: FairnessSnapshot, reading: FairnessReading) -> Sentence:
    if not reading.usage or not reading.total_micros:
        return (f"no job held a worker in the last {duration(reading.window_seconds)}.",)
    largest = reading.usage[0]
    share = percent(largest.worker_micros / reading.total_micros)
    cap = f"{fairness.settings.max_percent}\u00a0%"
    return (Name(shortened(largest.workspace)), f" holds the most, {share} of the workers; the cap is {cap}.")


def _expected(snapshot: Snapshot, fresh: Freshness) -> Sentence:
    """Which share the probability in force leads to, and why, where this exporter's own reading tells."""
    fairness = snapshot.fairness if fresh.usage and fresh.state is FairnessState.CAPPING else None
    would = None if fairness is None else fairness.would
    if (
        fairness is None
        or would is None
        or frozenset(would.payload.overloaded) != frozenset(fairness.in_force.overloaded)
    ):
        return ()
    capped, uncapped = would.capped_service.mean_seconds, would.uncapped_service.mean_seconds
    if capped is None or uncapped is None:
        return ()
    share = share_of_admission(fairness.in_force.admission_ppm / ADMIT_ALL_PPM, capped, uncapped)
    its, gets = ("Their", "they get") if len(fairness.in_force.overloaded) > 1 else ("Its", "it gets")
    means = f"{its} jobs take {mean(capped)} on average and others take {mean(uncapped)}"
    return (f"{means}: at this probability {gets} {percent(share)} of the workers while others can use the rest.",)


def _would(snapshot: Snapshot, fresh: Freshness) -> Sentence:
    """What this exporter would decide where its decision is not the one in force."""
    fairness = snapshot.fairness if fresh.usage else None
    if fairness is None or fairness.reading is None or fairness.would is None:
        return ()
    would, state = fairness.would, fresh.state
    if state is FairnessState.DISABLED:
        return _would_do("If it were enabled, ", fairness, fairness.reading, would)
    if state in {FairnessState.OFF, FairnessState.FAILED} or not shows_would(fairness):
        return ()
    # In two samples of one cluster the smaller workspaces change places: that is no other decision.
    if frozenset(would.payload.overloaded) == frozenset(fairness.in_force.overloaded):
        return ("This exporter only watches; it would decide the same.",) if would.payload.overloaded else ()
    return _would_do("This exporter only watches; if it decided, ", fairness, fairness.reading, would)


def _would_do(condition: str, fairness: FairnessSnapshot, reading: FairnessReading, would: Decision) -> Sentence:
    capped = would.payload.overloaded
    if not capped:
        return (f"{condition}nobody would be capped now.",)
    cap = f"{fairness.settings.max_percent}\u00a0%"
    ending = f"would be capped at {cap} and admitted with probability {percent(would.admission)}."
    return (condition, *_names(capped), f", which {_holds(capped, reading)}, {ending}")


def _queue(snapshot: Snapshot, fresh: Freshness) -> Sentence:
    if snapshot.queue is None or not fresh.queue:
        return ()
    reading = snapshot.queue.reading
    waiting = reading.other_waiting + sum(tag.waiting for tag in reading.tags)
    running = reading.other_running + sum(tag.running for tag in reading.tags)
    if not waiting:
        return (f"No job waits; {count(running)} run." if running else "No job waits and none runs.",)
    heads = [(tag.head_since, tag.tag) for tag in reading.tags if tag.head_since is not None]
    beginning = f"{counted(waiting, 'job waits', 'jobs wait')} and {count(running)} run"
    if not heads:
        return (f"{beginning}.",)
    since, longest = min(heads)
    parts: Sentence = (f"{beginning}; the longest head delay is {duration(reading.read_at - since)}, in ",)
    unattended = [tag.tag for tag in reading.tags if tag.waiting and not tag.workers]
    if not unattended:
        return (*parts, Name(shortened(longest)), ".")
    return (*parts, Name(shortened(longest)), ". No worker takes ", *_names(unattended), " now.")


def _holds(workspaces: Sequence[str], reading: FairnessReading) -> str:
    members = frozenset(workspaces)
    micros = sum(usage.worker_micros for usage in reading.usage if usage.workspace in members)
    share = percent(micros / max(reading.total_micros, 1))
    return f"together hold {share} of the workers" if len(members) > 1 else f"holds {share} of the workers"


def _names(names: Sequence[str]) -> Sentence:
    return enumerated([shortened(name) for name in names])
