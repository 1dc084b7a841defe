"""Grafana's own library shows our tables with the columns that they mean to have, and knows our units."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.committed import PROMETHEUS, dashboards
from tests.dashboards.test_dashboards import UNITS
from tests.web.grafana_data import GrafanaData, install

SCRIPT = Path(__file__).parent / "javascript" / "show_tables.cjs"
TABLES = [panel for each in dashboards(PROMETHEUS) for panel in each["panels"] if panel["type"] == "table"]
LABELS = {"Workspace": "workspace", "Tag": "tag"}

pytestmark = pytest.mark.needs("node", "npm")


@pytest.fixture(scope="module")
def library() -> GrafanaData:
    """The library, installed."""
    return install()


def shown(library: GrafanaData, panel: Any, rows: list[list[list[Any]]]) -> Any:
    """What the panel shows of the rows of its queries: titles and values, column by column."""
    label = LABELS[panel["fieldConfig"]["overrides"][0]["matcher"]["options"]]
    frames = [
        {"refId": target["refId"], "label": label, "rows": each}
        for target, each in zip(panel["targets"], rows, strict=True)
    ]
    return library.run(SCRIPT, json.dumps({"panel": panel, "frames": frames}).encode())


@pytest.mark.parametrize("panel", TABLES, ids=lambda panel: str(panel["title"]))
def test_a_table_has_a_row_for_each_label_and_a_column_for_each_query(panel: Any, library: GrafanaData) -> None:
    """Also where a query knows nothing of a label."""
    rows = [
        [["a", number], *([["b", 10 * number]] if number % 2 == 0 else [])] for number in range(len(panel["targets"]))
    ]
    columns = shown(library, panel, rows)["columns"]
    titles = [override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]]
    assert [title for title, _ in columns] == titles
    assert columns[0][1] == ["a", "b"]
    values = [[number, 10 * number if number % 2 == 0 else None] for number in range(len(panel["targets"]))]
    assert [column for _, column in columns[1:]] == values


def test_every_unit_is_known(library: GrafanaData) -> None:
    known = shown(library, TABLES[0], [[["a", 1]] for _ in TABLES[0]["targets"]])["units"]
    assert set(known) >= UNITS
