"""Recording and alert rules, by promtool and by what each of them must have."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from exporter.metrics.families import FAMILIES
from tests.dashboards.committed import FOLDER, rules
from tests.requirements import find_program

UNIT_TESTS = Path(__file__).parent / "rules"
MINUTES = re.compile(r"(\d+)m")


@pytest.fixture
def beside_the_rules(tmp_path: Path) -> Path:
    """A folder with the rules and their unit tests."""
    for path in (*(FOLDER / "rules").glob("*.yaml"), *UNIT_TESTS.glob("*.yaml")):
        shutil.copy(path, tmp_path)
    return tmp_path


def promtool(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(find_program("promtool")), *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.needs("promtool")
def test_promtool_accepts_the_rules() -> None:
    outcome = promtool(FOLDER / "rules", "check", "rules", "windmill-recording.yaml", "windmill-alerts.yaml")
    assert outcome.returncode == 0, outcome.stderr
    found = sum(int(count) for count in re.findall(r"SUCCESS: (\d+) rules found", outcome.stdout))
    assert found == len(rules())


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("name", sorted(path.name for path in UNIT_TESTS.glob("*.yaml")))
def test_the_rules_do_what_their_unit_tests_say(name: str, beside_the_rules: Path) -> None:
    outcome = promtool(beside_the_rules, "test", "rules", name)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.needs("promtool")
def test_a_sum_over_replicas_would_fail_the_unit_tests(beside_the_rules: Path) -> None:
    path = beside_the_rules / "windmill-recording.yaml"
    path.write_text(path.read_text().replace("max by (job, tag)", "sum by (job, tag)"))
    assert promtool(beside_the_rules, "test", "rules", "fairness.yaml").returncode == 1


def test_every_alert_is_seen_firing_and_not_firing() -> None:
    seen: dict[str, set[bool]] = defaultdict(set)
    for path in UNIT_TESTS.glob("*.yaml"):
        for scene in yaml.safe_load(path.read_text())["tests"]:
            for case in scene.get("alert_rule_test", []):
                seen[case["alertname"]].add(bool(case["exp_alerts"]))
    assert seen == {rule["alert"]: {True, False} for rule in rules() if "alert" in rule}


def test_every_alert_says_what_is_wrong_and_how_bad_it_is() -> None:
    for rule in rules():
        if "alert" in rule:
            assert rule["alert"].startswith("Windmill")
            assert rule["labels"]["severity"] in {"warning", "critical"}
            assert set(rule["annotations"]) == {"summary", "description"}
            assert rule["annotations"]["description"].endswith(".")


def test_a_tag_without_a_worker_is_held_for_five_minutes_or_more() -> None:
    """Field case F49: a group scaled to zero looks the same as a tag that nobody serves."""
    [rule] = [rule for rule in rules() if rule.get("alert") == "WindmillTagWithoutWorker"]
    [minutes] = MINUTES.findall(rule["for"])
    assert int(minutes) >= 5
    assert f"For {minutes} minutes" in rule["annotations"]["description"]


def test_every_family_and_recorded_series_that_a_rule_reads_exists() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    for rule in rules():
        named = re.findall(r"(?:\w+:)?windmill_\w+(?::max)?", rule["expr"])
        assert set(named) <= recorded | set(FAMILIES), rule
