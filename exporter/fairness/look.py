"""What a replica sees at the start of its cycle, in one read-only transaction with one SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from exporter.config import FairnessConfig
from exporter.database.database import Database
from exporter.database.state_rows import MAX_VALUE_BYTES, value_text
from exporter.database.statement import Statement
from exporter.fairness.payload import PAYLOAD_ROW
from exporter.fairness.reading import READING_ROW, StoredReading, parse_reading
from exporter.fairness.settings import SETTING_NAMES, pinned_values

STATE = Statement.load("exporter.fairness", "state.sql").with_text("value", value_text(MAX_VALUE_BYTES))
# Left out when the file pins all four, so that no grant on the relation is needed then. A value is cut at 200
# characters: a setting that needs more is no integer and no boolean.
SETTINGS_BRANCH = """\
 UNION ALL
SELECT 'setting', setting.name::text, left(setting.value::text, 200), NULL, date_part('epoch', now())
  FROM {settings} AS setting
 WHERE setting.name = ANY ($1::text[])
"""


@dataclass(frozen=True, slots=True)
class Look:
    """The state rows and the settings as stored. Ages in seconds of the database's clock; None at infinity."""

    now: float
    payload_text: str | None
    payload_missing: bool
    payload_age_seconds: float | None
    stored: StoredReading
    reading_missing: bool
    settings: Mapping[str, str]

    @property
    def payload_in_future(self) -> bool:
        """Whether the payload row was moved at a time that has not come yet."""
        return self.payload_age_seconds is not None and self.payload_age_seconds < 0


class Looker:
    """Runs the one statement, shaped once for what the configuration pins."""

    def __init__(self, database: Database, config: FairnessConfig) -> None:
        self._database = database
        pinned = pinned_values(config.settings)
        self._names = [name for name in SETTING_NAMES if name not in pinned]
        self._statement = STATE
        if self._names:
            branch = STATE.followed_by("state_and_settings", SETTINGS_BRANCH)
            self._statement = branch.with_relation("settings", config.settings_relation)

    async def look(self) -> Look:
        """Read the rows. Raises `DatabaseError`."""
        arguments = [self._names] if self._names else []
        async with self._database.transaction("fairness look") as transaction:
            rows = await transaction.fetch(self._statement, *arguments)
        states = {row["name"]: row for row in rows if row["source"] == "state"}
        payload, reading = states.get(PAYLOAD_ROW), states.get(READING_ROW)
        return Look(
            now=rows[-1]["now"],
            payload_text=None if payload is None else payload["value"],
            payload_missing=payload is None,
            payload_age_seconds=None if payload is None else payload["age_seconds"],
            stored=StoredReading() if reading is None else parse_reading(reading["value"]),
            reading_missing=reading is None,
            settings={row["name"]: row["value"] for row in rows if row["source"] == "setting"},
        )
