"""The committed dashboards and rules, and their queries with variables expanded as Grafana does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.sources import PROJECT

FOLDER = PROJECT / "dashboards"
PROMETHEUS = "prometheus"
JSON = "simpod-json-datasource"
VARIABLE = re.compile(r"\$\{(\w+)(?::(\w+))?\}|\$(\w+)")


def dashboard_paths() -> list[Path]:
    """The committed dashboards."""
    return sorted(FOLDER.glob("*.json"))


def dashboards(plugin: str) -> list[Any]:
    """The committed dashboards of one type of datasource."""
    loaded = [json.loads(path.read_text()) for path in dashboard_paths()]
    return [each for each in loaded if each["templating"]["list"][0]["query"] == plugin]


def rules() -> list[Any]:
    """Every recording and alert rule."""
    documents = [yaml.safe_load(path.read_text()) for path in sorted((FOLDER / "rules").glob("*.yaml"))]
    return [rule for document in documents for group in document["groups"] for rule in group["rules"]]


@dataclass(frozen=True)
class Target:
    """One query of one panel, and where it stands."""

    where: str
    query: Mapping[str, Any]


def targets(plugin: str) -> Iterator[Target]:
    """Every query of every panel, and of every annotation."""
    for dashboard in dashboards(plugin):
        for panel in dashboard["panels"]:
            for query in panel["targets"]:
                yield Target(f"{dashboard['uid']}: {panel['title']}: {query['refId']}", query)
        for annotation in dashboard["annotations"]["list"]:
            yield Target(f"{dashboard['uid']}: annotation {annotation['name']}", annotation["target"])


def expanded(text: str, values: Mapping[str, Any]) -> str:
    """`text` with its variables; a list as a regex alternation, or as JSON where the text asks for that."""

    def value(match: re.Match[str]) -> str:
        chosen = values[match[1] or match[3]]
        if match[2] == "json":
            return chosen if isinstance(chosen, str) else json.dumps(chosen)
        if isinstance(chosen, str):
            return chosen
        return f"({'|'.join(re.escape(each) for each in chosen)})"

    return VARIABLE.sub(value, text)
