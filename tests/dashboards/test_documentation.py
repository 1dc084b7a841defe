"""The page on Grafana names what ships, and nothing else."""

from __future__ import annotations

import re

from tests.dashboards.committed import dashboard_paths, rules
from tests.sources import PROJECT

PAGE = PROJECT / "docs" / "grafana.md"


def test_every_link_to_a_file_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", PAGE.read_text())
    assert links
    assert [link for link in links if not (PAGE.parent / link).exists()] == []


def test_every_dashboard_is_described() -> None:
    described = re.findall(r"^\| \[([\w-]+\.json)\]", PAGE.read_text(), re.MULTILINE)
    assert sorted(described) == [path.name for path in dashboard_paths()]


def test_every_alert_is_described_with_its_hold() -> None:
    described = re.findall(r"^\| `(Windmill\w+)` \| .* \| (at once|\d+ min) \|$", PAGE.read_text(), re.MULTILINE)
    holds = {"0m": "at once"}
    alerts = [rule for rule in rules() if "alert" in rule]
    assert described == [(rule["alert"], holds.get(rule["for"], rule["for"].replace("m", " min"))) for rule in alerts]


def test_every_recorded_series_that_is_named_exists() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    named = set(re.findall(r"`(\w+:windmill_\w+:\w+)`", PAGE.read_text()))
    assert named
    assert named <= recorded
