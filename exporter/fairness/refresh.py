"""The refresh: once a cycle for the whole fleet, by the replica that claims it; the others read what it stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from exporter.conditions import Conditions
from exporter.config import FairnessConfig
from exporter.database import state_rows
from exporter.database.database import Database, run_once_more
from exporter.errors import DatabaseError, DatabaseTimeout
from exporter.fairness import store
from exporter.fairness.admission import admission_ppm, decide, target_share
from exporter.fairness.gate import Cadence, Gate
from exporter.fairness.look import Look, Looker
from exporter.fairness.payload import DRAINED, PAYLOAD_ROW, ParsedPayload, build_payload, parse_payload
from exporter.fairness.reading import EMPTY, READING_ROW
from exporter.fairness.settings import parse_settings
from exporter.fairness.values import (
    FairnessMode,
    FairnessReading,
    FairnessSettings,
    FairnessSnapshot,
    Payload,
    RefreshOutcome,
    RefreshResult,
)

ASK_CHECK = "windmill-exporter check-database names the missing grant"


@dataclass(frozen=True, slots=True)
class _Seen:
    """One look, with the settings and the payload that it means."""

    look: Look
    settings: FairnessSettings
    payload: ParsedPayload
    payload_errors: int

    @property
    def must_drain(self) -> bool:
        """Whether a decision of ours is still stored although fairness was switched off."""
        stored = self.payload.payload != DRAINED and not self.look.payload_missing
        return not self.settings.enabled and (stored or bool(self.look.stored.owed))


class Refresher:
    """One process's refresh, one `tick` at a time. Times come from `monotonic` and from the database alone.

    `require` raises `MissingCapability` while the database does not offer what the statements need, `require_audit`
    while the audit log cannot be read.
    """

    name = "fairness"

    def __init__(
        self,
        database: Database,
        config: FairnessConfig,
        *,
        replica: str,
        conditions: Conditions,
        require: Callable[[], Awaitable[None]],
        require_audit: Callable[[], Awaitable[None]],
        monotonic: Callable[[], float],
        cadence: Cadence | None = None,
    ) -> None:
        self._database = database
        self._config = config
        self._replica = replica
        self._conditions = conditions
        self._require = require
        self._require_audit = require_audit
        self._monotonic = monotonic
        self._cadence = cadence or Cadence()
        self._looker = Looker(database, config)
        self._gate = Gate()
        self._snapshot: FairnessSnapshot | None = None
        self._last_good = DRAINED
        self._counted_payload: str | None = ""
        self._audited: frozenset[str] = frozenset()
        self._audited_since: Mapping[str, float] = MappingProxyType({})

    @property
    def interval_seconds(self) -> float:
        """The present interval between two cycles."""
        snapshot = self._snapshot
        somebody = snapshot is not None and bool(
            snapshot.in_force.overloaded or (snapshot.would and snapshot.would.payload.overloaded)
        )
        return self._cadence.interval(capped=somebody)

    def due_in(self) -> float:
        """Seconds until the next cycle."""
        return self._gate.due_in(self._monotonic(), self.interval_seconds + self._cadence.slack)

    async def tick(self) -> RefreshOutcome:
        """Run one cycle. Raises `DatabaseError`; the attempt then counts all the same."""
        if not self._gate.enter(self._monotonic(), self.interval_seconds):
            return RefreshOutcome(RefreshResult.SKIPPED)
        try:
            await self._database.ensure_connection("fairness")
            async with asyncio.timeout(self._cadence.refresh_limit):
                outcome = await run_once_more(self._database, self._cycle)
        except TimeoutError:
            limit = self._cadence.refresh_limit
            raise DatabaseTimeout(f"fairness refresh: not done within {limit:g} s", reason="deadline") from None
        finally:
            self._gate.leave()
        if outcome.snapshot is not None:
            self._snapshot = outcome.snapshot
        return outcome

    async def _cycle(self) -> RefreshOutcome:
        await self._require()
        look = await self._looker.look()
        self._gate.stamp(self._monotonic())
        seen = self._understand(look)
        if self._config.mode is FairnessMode.SHADOW:
            return await self._observe(seen)
        if (seen.settings.enabled or seen.must_drain) and self._is_due(look):
            fence = await self._claim(
                PAYLOAD_ROW, self._cadence.claim_guard, build_payload(DRAINED), look.payload_missing
            )
            if fence is not None:
                return await self._lead(seen, fence)
        elif self._reading_age(look) > self._cadence.reading:
            fence = await self._claim(READING_ROW, self._cadence.reading, EMPTY, look.reading_missing)
            if fence is not None:
                return await self._read_beside(seen, fence)
        snapshot = await self._snapshot_of(seen, look.stored.reading, seen.payload.payload)
        return RefreshOutcome(RefreshResult.LOST, snapshot, payload_errors=seen.payload_errors)

    async def _claim(self, row: str, min_age_seconds: float, initial: str, missing: bool) -> datetime | None:
        fence = await state_rows.claim(
            self._database, "fairness claim", row, min_age_seconds=min_age_seconds, initial=initial, missing=missing
        )
        # From here on the row is younger than this moment: the next attempt finds it exactly old enough.
        self._gate.stamp(self._monotonic())
        return fence

    async def _observe(self, seen: _Seen) -> RefreshOutcome:
        """Shadow: another replica's reading while it is fresh, else our own. Nothing is written."""
        reading = seen.look.stored.reading
        if reading is None or self._reading_age(seen.look) > self._cadence.idle:
            reading = await store.aggregate(self._database, seen.settings, self._replica)
        snapshot = await self._snapshot_of(seen, reading, seen.payload.payload)
        return RefreshOutcome(RefreshResult.OBSERVED, snapshot, payload_errors=seen.payload_errors)

    async def _lead(self, seen: _Seen, fence: datetime) -> RefreshOutcome:
        """This replica's cycle: aggregate, decide, store under the fence."""
        reading = await store.aggregate(self._database, seen.settings, self._replica)
        payload = decide(reading, seen.settings).payload if seen.settings.enabled else DRAINED
        written = await store.write_decision(self._database, fence, payload, reading, seen.settings)
        if written is None:
            return RefreshOutcome(RefreshResult.FENCED, payload_errors=seen.payload_errors)
        failures = 0
        if written.audit_failure is None:
            self._conditions.clear("audit")
        else:
            failures = len(written.reading.owed)
            self._conditions.raise_problem(
                "audit",
                f"{failures} audit rows could not be written and are owed: {written.audit_failure} ({ASK_CHECK})",
                kind=written.audit_failure.sqlstate,
            )
        snapshot = await self._snapshot_of(seen, written.reading, payload)
        return RefreshOutcome(
            RefreshResult.WON,
            snapshot,
            capped=written.entered,
            uncapped=written.left,
            audit_failures=failures,
            payload_errors=seen.payload_errors,
        )

    async def _read_beside(self, seen: _Seen, fence: datetime) -> RefreshOutcome:
        """Beside another writer, or while fairness is switched off: only the reading is ours."""
        reading = await store.aggregate(self._database, seen.settings, self._replica)
        stored = await store.write_reading(self._database, fence, reading, seen.payload.payload)
        if stored is None:
            return RefreshOutcome(RefreshResult.FENCED, payload_errors=seen.payload_errors)
        snapshot = await self._snapshot_of(seen, stored, seen.payload.payload)
        return RefreshOutcome(RefreshResult.OBSERVED, snapshot, payload_errors=seen.payload_errors)

    def _understand(self, look: Look) -> _Seen:
        parsed = parse_settings(look.settings, self._config.settings)
        self._report("settings", "Windmill's settings: " + "; ".join(parsed.problems), bool(parsed.problems))
        future = "background_task_state: workspace_fairness was updated in the future; it counts as stale"
        self._report("clock", future, look.payload_in_future)
        target_ppm = admission_ppm(target_share(parsed.settings.max_percent))
        payload, errors = ParsedPayload(DRAINED), 0
        if not look.payload_missing:
            payload = parse_payload(look.payload_text, target_ppm=target_ppm, last_good=self._last_good)
            sentence = "background_task_state: workspace_fairness: " + "; ".join(payload.problems)
            self._report("payload", sentence, bool(payload.problems))
            if payload.problems and look.payload_text != self._counted_payload:
                errors = 1
            self._counted_payload = look.payload_text
        self._last_good = payload.payload
        return _Seen(look, parsed.settings, payload, errors)

    def _report(self, key: str, sentence: str, wrong: bool) -> None:
        if wrong:
            self._conditions.raise_problem(key, sentence)
        else:
            self._conditions.clear(key)

    def _is_due(self, look: Look) -> bool:
        age = look.payload_age_seconds
        return age is None or age < 0 or age >= self.interval_seconds

    def _reading_age(self, look: Look) -> float:
        """Seconds since the stored reading was taken; infinite without one, or when it lies in the future."""
        reading = look.stored.reading
        age = float("inf") if reading is None else look.now - reading.read_at
        return age if age >= -1 else float("inf")

    async def _snapshot_of(self, seen: _Seen, reading: FairnessReading | None, payload: Payload) -> FairnessSnapshot:
        look = seen.look
        ours = reading is not None and reading.decided == payload
        now = max(look.now, reading.read_at) if reading is not None else look.now
        age = look.payload_age_seconds
        if ours and reading is not None:
            age = now - reading.read_at
        in_force = payload if seen.settings.enabled else DRAINED
        return FairnessSnapshot(
            mode=self._config.mode,
            settings=seen.settings,
            now=now,
            observed_monotonic=self._monotonic(),
            in_force=in_force,
            in_force_since=await self._since(in_force, reading),
            payload_at=None if age is None else now - age,
            payload_age_seconds=age,
            reading=reading,
            would=None if reading is None else decide(reading, seen.settings),
            refreshed_by=reading.by if ours and reading is not None else None,
            interval_seconds=self.interval_seconds,
        )

    async def _since(self, in_force: Payload, reading: FairnessReading | None) -> Mapping[str, float]:
        """Since when each capped workspace is capped: from the fleet's reading, else from the audit log."""
        known = dict(reading.capped_since) if reading is not None else {}
        unknown = frozenset(in_force.overloaded) - known.keys()
        if unknown != self._audited:
            self._audited_since = await self._look_up_since(unknown) if unknown else {}
            self._audited = unknown
        since = {**self._audited_since, **known}
        return MappingProxyType({name: since[name] for name in in_force.overloaded if name in since})

    async def _look_up_since(self, workspaces: frozenset[str]) -> Mapping[str, float]:
        try:
            # Row security that hides the log would answer that nobody was ever capped.
            await self._require_audit()
            since = await store.capped_since(self._database, workspaces)
        except DatabaseError as error:
            self._conditions.raise_problem("capped_since", f"since when workspaces are capped is unknown: {error}")
            return {}
        self._conditions.clear("capped_since")
        return since
