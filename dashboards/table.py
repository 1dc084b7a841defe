"""Tables: columns with units, from several PromQL queries joined by a label, or as our JSON endpoint sends them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dashboards.panel import NEUTRAL, Json, JsonQuery, Panel, PromQuery, Steps, override, thresholds


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title, unit, the query that fills it (none: the label itself), colours by value, a link."""

    title: str
    unit: str = "none"
    expression: str = ""
    base: str = NEUTRAL
    steps: Steps = ()
    link: str = ""

    def override(self) -> Json:
        """Its field settings."""
        properties: Json = {"unit": self.unit}
        if self.steps:
            properties["thresholds"] = thresholds(self.base, self.steps)
            properties["custom__cellOptions"] = {"type": "color-text"}
        if self.link:
            properties["links"] = [{"title": "History", "url": self.link, "targetBlank": False}]
        return override(self.title, **properties)


def joined(
    title: str, description: str, label: str, columns: tuple[Column, ...], *, sort_by: str, width: int = 12
) -> Panel:
    """One row a value of `label`, one column a query; the first column is the label. Largest `sort_by` first."""
    filled = columns[1:]
    names = [label, *(f"Value #{chr(ord('A') + index)}" for index in range(len(filled)))]
    return _table(
        title,
        description,
        tuple(PromQuery(column.expression, instant=True, table=True) for column in filled),
        columns,
        sort_by,
        width,
        (
            {"id": "joinByField", "options": {"byField": label, "mode": "outer"}},
            {"id": "filterFieldsByName", "options": {"include": {"names": names}}},
            _organize({name: column.title for name, column in zip(names, columns, strict=True)}),
        ),
    )


def sent(title: str, description: str, query: JsonQuery, columns: Mapping[str, Column], *, sort_by: str) -> Panel:
    """A table as the endpoint sends it: the columns by the names that it gives them, without its others."""
    organize = _organize({name: column.title for name, column in columns.items()})
    keep = {"id": "filterFieldsByName", "options": {"include": {"names": list(columns)}}}
    return _table(title, description, (query,), tuple(columns.values()), sort_by, 12, (keep, organize))


def _organize(titles: Mapping[str, str]) -> Json:
    """Columns in this order, under these titles."""
    order = {name: index for index, name in enumerate(titles)}
    return {"id": "organize", "options": {"renameByName": dict(titles), "indexByName": order, "excludeByName": {}}}


def _table(
    title: str,
    description: str,
    queries: tuple[PromQuery | JsonQuery, ...],
    columns: tuple[Column, ...],
    sort_by: str,
    width: int,
    transformations: tuple[Json, ...],
) -> Panel:
    return Panel(
        "table",
        title,
        description,
        "none",
        queries,
        width,
        8,
        {"showHeader": True, "cellHeight": "sm", "sortBy": [{"displayName": sort_by, "desc": True}]},
        {
            "color": {"mode": "thresholds"},
            "thresholds": thresholds(NEUTRAL),
            "custom": {"align": "auto", "filterable": False, "cellOptions": {"type": "auto"}},
        },
        tuple(column.override() for column in columns),
        transformations,
    )
