"""A dashboard: variables, panels placed in rows of 24 columns, links to its siblings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dashboards.panel import Json, Panel

COLUMNS = 24
TAG = "windmill"
PROMETHEUS = "prometheus"
JSON = "simpod-json-datasource"


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard that reads datasources of one type, through its variable `datasource`."""

    uid: str
    title: str
    description: str
    plugin: str
    variables: tuple[Json, ...]
    panels: tuple[Panel, ...]
    since: str
    refresh: str
    annotations: tuple[Json, ...] = field(default=())

    def to_json(self) -> Json:
        """What Grafana imports and provisions."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": [TAG],
            "editable": True,
            "graphTooltip": 1,
            "refresh": self.refresh,
            "schemaVersion": 39,
            "version": 1,
            "timezone": "",
            "time": {"from": f"now-{self.since}", "to": "now"},
            "timepicker": {},
            "annotations": {"list": list(self.annotations)},
            "links": [_links_to_siblings()],
            "templating": {"list": [datasource_variable(self.plugin), *self.variables]},
            "panels": placed(self.panels, datasource(self.plugin)),
        }


def datasource(plugin: str) -> Json:
    """The reference of every panel, variable and annotation of a dashboard."""
    return {"type": plugin, "uid": "${datasource}"}


def placed(panels: Sequence[Panel], reference: Json) -> list[Json]:
    """The panels from left to right, a new row wherever the next one does not fit."""
    x = y = tallest = 0
    result = []
    for number, panel in enumerate(panels, 1):
        if x + panel.width > COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        result.append(panel.to_json(number, x, y, reference))
        x += panel.width
        tallest = max(tallest, panel.height)
    return result


def datasource_variable(plugin: str) -> Json:
    """Lets the viewer choose among the datasources of one type."""
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "Datasource",
        "query": plugin,
        "regex": "",
        "hide": 0,
        "refresh": 1,
        "multi": False,
        "includeAll": False,
        "current": {},
        "options": [],
    }


def query_variable(
    plugin: str, name: str, label: str, query: Json, definition: str, *, every: str | None = None
) -> Json:
    """A variable filled by a query. With `every`, several may be chosen and `every` stands for all of them."""
    variable: Json = {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": datasource(plugin),
        "query": query,
        "definition": definition,
        "regex": "",
        "hide": 0,
        "refresh": 2,
        "sort": 1,
        "multi": every is not None,
        "includeAll": every is not None,
        "current": {},
        "options": [],
    }
    if every is not None:
        variable["allValue"] = every
        variable["current"] = {"selected": True, "text": ["All"], "value": ["$__all"]}
    return variable


def label_values(name: str, label: str, series: str, *, every: bool = False) -> Json:
    """A variable of the values that a label has in Prometheus."""
    definition = f"label_values({series}, {name})"
    query = {"query": definition, "refId": "PrometheusVariableQueryEditor-VariableQuery", "qryType": 1}
    return query_variable(PROMETHEUS, name, label, query, definition, every=".*" if every else None)


def _links_to_siblings() -> Json:
    return {
        "type": "dashboards",
        "title": "Windmill",
        "tags": [TAG],
        "asDropdown": False,
        "includeVars": False,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }
