"""Panels and their queries as Grafana reads them, with the settings that keep a drawing honest in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Json = dict[str, Any]
Steps = Sequence[tuple[float, str]]

NEUTRAL, GOOD, ODD, BAD = "text", "green", "orange", "red"
LAST, PEAK = "lastNotNull", "max"


class Query(Protocol):
    """What a panel asks its datasource."""

    def to_json(self, ref_id: str) -> Json:
        """The target of a panel, without its datasource."""


@dataclass(frozen=True, slots=True)
class PromQuery:
    """A PromQL query. `instant` asks for now alone, `table` for rows instead of series."""

    expression: str
    legend: str = ""
    instant: bool = False
    table: bool = False

    def to_json(self, ref_id: str) -> Json:
        """See `Query`."""
        return {
            "refId": ref_id,
            "expr": self.expression,
            "legendFormat": self.legend or "__auto",
            "instant": self.instant,
            "range": not self.instant,
            "format": "table" if self.table else "time_series",
            "editorMode": "code",
        }


@dataclass(frozen=True, slots=True)
class JsonQuery:
    """A metric of our JSON endpoint; `payload` is JSON text in which Grafana expands variables."""

    metric: str
    payload: str = ""

    def to_json(self, ref_id: str) -> Json:
        """See `Query`."""
        return {"refId": ref_id, "target": self.metric, "payload": self.payload, "editorMode": "code"}


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; `width` of 24 columns. `defaults` are the field settings besides the unit."""

    kind: str
    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    width: int
    height: int
    options: Json
    defaults: Json = field(default_factory=dict)
    overrides: tuple[Json, ...] = ()
    transformations: tuple[Json, ...] = ()

    def to_json(self, number: int, x: int, y: int, datasource: Json) -> Json:
        """The panel at its place; `number` is its id."""
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": datasource,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [
                {"datasource": datasource, **query.to_json(chr(ord("A") + index))}
                for index, query in enumerate(self.queries)
            ],
            "fieldConfig": {"defaults": {"unit": self.unit, **self.defaults}, "overrides": list(self.overrides)},
            "options": self.options,
            "transformations": list(self.transformations),
        }


def thresholds(base: str, steps: Steps = ()) -> Json:
    """Colours by value: `base` below the first step."""
    ordered: list[Json] = [{"color": base, "value": None}]
    return {"mode": "absolute", "steps": ordered + [{"color": color, "value": value} for value, color in steps]}


def mapping(texts: Mapping[str, tuple[str, str]]) -> list[Json]:
    """Values shown as (text, colour)."""
    options = {
        value: {"text": text, "color": color, "index": index}
        for index, (value, (text, color)) in enumerate(texts.items())
    }
    return [{"type": "value", "options": options}] if options else []


def override(name: str, **properties: object) -> Json:
    """Settings of the one field called `name`; dots in property names are written as two underscores."""
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": key.replace("__", "."), "value": value} for key, value in properties.items()],
    }


def stat(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int,
    base: str = NEUTRAL,
    steps: Steps = (),
    texts: Mapping[str, tuple[str, str]] | None = None,
    text_mode: str = "auto",
    colors: Mapping[str, str] | None = None,
) -> Panel:
    """A number, or a few of them with names; `colors` are those of fields by name."""
    return Panel(
        "stat",
        title,
        description,
        unit,
        queries,
        width,
        4,
        {
            "reduceOptions": {"calcs": [LAST], "fields": "", "values": False},
            "colorMode": "value",
            "graphMode": "none",
            "textMode": text_mode,
            "justifyMode": "auto",
            "orientation": "auto",
        },
        {
            "color": {"mode": "thresholds"},
            "thresholds": thresholds(base, steps),
            "mappings": mapping(texts or {}),
            "noValue": "unknown",
        },
        tuple(override(name, color={"mode": "fixed", "fixedColor": color}) for name, color in (colors or {}).items()),
    )


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    height: int = 8,
    symlog: bool = False,
    top: float | None = None,
    bars: bool = False,
    dashed: Sequence[str] = (),
) -> Panel:
    """Series over time from 0 on. `symlog` shows seconds and hours in one panel; `dashed` names reference lines."""
    scale: Json = {"type": "symlog", "log": 10, "linearThreshold": 1} if symlog else {"type": "linear"}
    defaults: Json = {
        "min": 0,
        "color": {"mode": "palette-classic"},
        "custom": {
            "drawStyle": "bars" if bars else "line",
            "lineInterpolation": "linear",
            "lineWidth": 1,
            "fillOpacity": 60 if bars else 0,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "none", "group": "A"},
            "scaleDistribution": scale,
        },
    }
    if top is not None:
        defaults["max"] = top
    dash = {"fill": "dash", "dash": [10, 10]}
    reference = {"color": {"mode": "fixed", "fixedColor": BAD}, "custom__lineStyle": dash}
    return Panel(
        "timeseries",
        title,
        description,
        unit,
        queries,
        width,
        height,
        {
            "legend": {"displayMode": "table", "placement": "right", "showLegend": True, "calcs": [LAST, PEAK]},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        defaults,
        tuple(override(name, **reference) for name in dashed),
    )


def timeline(title: str, description: str, *queries: Query, texts: Mapping[str, tuple[str, str]]) -> Panel:
    """Bands over time, one a series."""
    return Panel(
        "state-timeline",
        title,
        description,
        "none",
        queries,
        12,
        8,
        {
            "showValue": "never",
            "mergeValues": True,
            "rowHeight": 0.8,
            "alignValue": "left",
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False},
            "tooltip": {"mode": "single", "sort": "none"},
        },
        {
            "color": {"mode": "thresholds"},
            "thresholds": thresholds(NEUTRAL),
            "mappings": mapping(texts),
            "custom": {"spanNulls": False, "fillOpacity": 80, "lineWidth": 0},
        },
    )
