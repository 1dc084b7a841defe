"""Every committed dashboard keeps the rules that make its drawing honest and its import painless."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from exporter.metrics.families import FAMILIES
from exporter.metrics.values import FamilyType, Origin
from tests.dashboards.committed import JSON, PROMETHEUS, dashboard_paths, dashboards, targets

# The ids under which Grafana knows these units.
UNITS = {"none", "short", "s", "percentunit", "ops", "dateTimeFromNow"}
PANEL_TYPES = {"stat", "table", "timeseries", "state-timeline"}
VARIABLE_TYPES = {"datasource", "query"}
FAMILY = re.compile(r"\bwindmill_\w+")


@pytest.fixture(params=dashboard_paths(), ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    """One of the dashboards, as a file."""
    return Path(request.param)


@pytest.fixture
def dashboard(path: Path) -> Any:
    """The dashboard itself."""
    return json.loads(path.read_text())


def test_there_are_three_dashboards_each_with_its_own_uid_and_title() -> None:
    every = [*dashboards(PROMETHEUS), *dashboards(JSON)]
    assert [each["uid"] for each in every] == ["windmill-fairness", "windmill-queues", "windmill-queue-history"]
    assert len({each["title"] for each in every}) == 3


def test_the_file_is_named_after_the_uid(path: Path, dashboard: Any) -> None:
    assert path.stem == dashboard["uid"]


def test_one_type_of_datasource_is_named_everywhere_through_the_variable(path: Path, dashboard: Any) -> None:
    plugin = dashboard["templating"]["list"][0]["query"]
    assert plugin in {PROMETHEUS, JSON}
    references = re.findall(r'"datasource": (\{[^}]*\}\s*[^}]*\})', path.read_text())
    assert len(references) > len(dashboard["panels"])
    assert {json.dumps(json.loads(each)) for each in references} == {
        json.dumps({"type": plugin, "uid": "${datasource}"})
    }
    assert "${DS_" not in path.read_text()
    assert "__inputs" not in dashboard


def test_panels_have_unique_ids_and_do_not_overlap(dashboard: Any) -> None:
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert {x for x, _ in cells} == set(range(24))


def test_panels_have_a_title_a_description_and_a_known_unit(dashboard: Any) -> None:
    panels = dashboard["panels"]
    assert len({panel["title"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["type"] in PANEL_TYPES
        assert panel["description"].endswith(".")
        assert panel["targets"]
        overridden = [
            each["value"]
            for one in panel["fieldConfig"]["overrides"]
            for each in one["properties"]
            if each["id"] == "unit"
        ]
        assert {panel["fieldConfig"]["defaults"]["unit"], *overridden} <= UNITS, panel["title"]


def test_only_reducers_that_are_true_of_vertices_are_used(dashboard: Any) -> None:
    for panel in dashboard["panels"]:
        legend = panel["options"].get("legend", {}).get("calcs", [])
        reduced = panel["options"].get("reduceOptions", {}).get("calcs", [])
        assert {*legend, *reduced} <= {"lastNotNull", "max"}, panel["title"]


def test_lines_are_drawn_as_they_are_stored(dashboard: Any) -> None:
    drawn = [panel for panel in dashboard["panels"] if panel["type"] == "timeseries"]
    assert drawn
    for panel in drawn:
        defaults = panel["fieldConfig"]["defaults"]
        custom = defaults["custom"]
        assert custom["lineInterpolation"] == "linear"
        assert custom["showPoints"] == "never"
        assert custom["spanNulls"] is False
        assert custom["stacking"]["mode"] == "none"
        assert defaults["min"] == 0
        wait = defaults["unit"] == "s"
        scale = {"type": "symlog", "log": 10, "linearThreshold": 1} if wait else {"type": "linear"}
        assert custom["scaleDistribution"] == scale


def test_no_variable_is_of_a_type_on_which_the_json_plugin_throws(dashboard: Any) -> None:
    variables = dashboard["templating"]["list"]
    assert {variable["type"] for variable in variables} <= VARIABLE_TYPES
    assert variables[0]["type"] == "datasource"


def test_only_variables_that_exist_are_used(path: Path, dashboard: Any) -> None:
    known = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = {first or second for first, second in re.findall(r"\$\{(\w+)|\$(\w+)", path.read_text())}
    assert {name for name in used if not name.startswith("__")} <= known
    assert {name for name in used if name.startswith("__")} <= {"__all", "__rate_interval", "__value"}


def test_dashboards_link_to_each_other_by_their_tag(dashboard: Any) -> None:
    [link] = dashboard["links"]
    assert link["type"] == "dashboards"
    assert set(link["tags"]) <= set(dashboard["tags"])


def test_links_of_rows_lead_to_dashboards_and_variables_that_exist(path: Path) -> None:
    variables = {
        each["uid"]: {variable["name"] for variable in each["templating"]["list"]}
        for each in (json.loads(other.read_text()) for other in dashboard_paths())
    }
    for uid, name in re.findall(r'"/d/([\w-]+)\?var-(\w+)=', path.read_text()):
        assert name in variables[uid]


def test_the_history_is_chosen_by_several_tags_or_all() -> None:
    [history] = dashboards(JSON)
    [_, tag] = history["templating"]["list"]
    assert (tag["name"], tag["multi"], tag["includeAll"]) == ("tag", True, True)
    payloads = {target.query["target"]: target.query["payload"] for target in targets(JSON)}
    assert payloads["queue_count"] == payloads["queue_delay"] == '{"tags": ${tag:json}}'


def test_cap_transitions_are_annotations_of_the_history() -> None:
    [history] = dashboards(JSON)
    [annotation] = history["annotations"]["list"]
    assert annotation["enable"] is True
    assert annotation["target"]["target"] == "fairness_events"


def test_every_family_that_a_panel_reads_exists() -> None:
    named = set(itertools.chain.from_iterable(FAMILY.findall(target.query["expr"]) for target in targets(PROMETHEUS)))
    assert named <= set(FAMILIES)
    assert len(named) > 25


def test_what_the_database_says_is_never_summed_over_replicas() -> None:
    """Field case F83: three replicas of a tag with 9 jobs show 9."""
    for target in targets(PROMETHEUS):
        for name in FAMILY.findall(target.query["expr"]):
            family = FAMILIES[name]
            before = re.escape(name) + r"\{"
            if family.origin is Origin.CLUSTER:
                readers = re.findall(rf"(\w+)(?: by \(\w+\))? \({before}", target.query["expr"])
                assert readers == ["max"] * target.query["expr"].count(f"{name}{{"), target.where
            elif family.type is FamilyType.COUNTER:
                assert re.search(rf"sum(?: by \(\w+\))? \((?:rate|increase)\({before}", target.query["expr"])


def test_every_selector_reads_the_chosen_cluster_alone() -> None:
    for target in targets(PROMETHEUS):
        for name in FAMILY.findall(target.query["expr"]):
            chosen = target.query["expr"].count(f'{name}{{job="$job"')
            assert chosen == target.query["expr"].count(f"{name}{{"), target.where
