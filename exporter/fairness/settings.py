"""Pure: Windmill's four settings, as its own server reads them, and the file's pins above them.

Out of range is clamped, a wrong type is the default; either is a problem to report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from exporter.config import FairnessPins
from exporter.database.stored_json import decode_json
from exporter.fairness.values import FairnessSettings, SettingSource

ENABLED = "workspace_fairness_enabled"
MAX_PERCENT = "workspace_fairness_max_percent"
DURATION_SECS = "workspace_fairness_duration_secs"
MIN_TOTAL_JOBS = "workspace_fairness_min_total_jobs"


@dataclass(frozen=True, slots=True)
class IntegerSetting:
    """An integer setting's default and range."""

    name: str
    default: int
    low: int
    high: int


INTEGERS = (
    IntegerSetting(MAX_PERCENT, 50, 1, 100),
    IntegerSetting(DURATION_SECS, 10, 1, 86_400),
    IntegerSetting(MIN_TOTAL_JOBS, 4, 0, 2**32 - 1),
)
SETTING_NAMES = (ENABLED, *(setting.name for setting in INTEGERS))


@dataclass(frozen=True, slots=True)
class ParsedSettings:
    """The settings in force and, one sentence each, what in the database was clamped or replaced by its default."""

    settings: FairnessSettings
    problems: tuple[str, ...]


def pinned_values(pins: FairnessPins) -> dict[str, bool | int]:
    """The pins that are set, by Windmill's names."""
    named = {
        ENABLED: pins.enabled,
        MAX_PERCENT: pins.max_percent,
        DURATION_SECS: pins.duration_secs,
        MIN_TOTAL_JOBS: pins.min_total_jobs,
    }
    return {name: value for name, value in named.items() if value is not None}


def parse_settings(stored: Mapping[str, str], pins: FairnessPins) -> ParsedSettings:
    """The settings in force. `stored` maps names to JSON text, without the names that the database lacks."""
    problems: list[str] = []
    sources: dict[str, SettingSource] = {}
    values: dict[str, bool | int] = {}
    for name in SETTING_NAMES:
        sources[name] = SettingSource.DATABASE if name in stored else SettingSource.DEFAULT
    values[ENABLED] = _parse_enabled(stored.get(ENABLED), problems)
    for setting in INTEGERS:
        values[setting.name] = _parse_integer(setting, stored.get(setting.name), problems)
    for name, value in pinned_values(pins).items():
        values[name] = value
        sources[name] = SettingSource.FILE
    settings = FairnessSettings(
        enabled=bool(values[ENABLED]),
        max_percent=values[MAX_PERCENT],
        window_seconds=values[DURATION_SECS],
        min_total_worker_seconds=values[MIN_TOTAL_JOBS],
        sources=MappingProxyType(sources),
    )
    unpinned = tuple(problem for problem in problems if sources[problem.split(":")[0]] is not SettingSource.FILE)
    return ParsedSettings(settings, unpinned)


def _parse_enabled(text: str | None, problems: list[str]) -> bool:
    value = decode_json(text) if text is not None else False
    if not isinstance(value, bool):
        problems.append(f"{ENABLED}: expected true or false, so it counts as false")
        return False
    return value


def _parse_integer(setting: IntegerSetting, text: str | None, problems: list[str]) -> int:
    if text is None:
        return setting.default
    value = decode_json(text)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        problems.append(f"{setting.name}: expected a non-negative integer, so the default {setting.default} is used")
        return setting.default
    clamped = max(setting.low, min(setting.high, value))
    if clamped != value:
        problems.append(f"{setting.name}: outside {setting.low}..{setting.high}, so {clamped} is used")
    return clamped
