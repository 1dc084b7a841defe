"""The pages for operators say what is there: links, keys, flags, files, and examples that parse."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml

from exporter.cli import COMMANDS
from exporter.config_keys import config_keys
from exporter.flags import parse_flags
from exporter.metrics.families import FAMILIES
from tests.sources import PROJECT

PAGES = ("docs/deployment.md", "docs/database-roles.md")


def text_of(page: str) -> str:
    return (PROJECT / page).read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text_of(page), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    anchors = {"#" + heading.lower().replace(" ", "-") for heading in headings}
    for link in re.findall(r"\]\(([^)]+)\)", text_of(page)):
        assert link in anchors or ((PROJECT / page).parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES)
def test_every_key_command_metric_and_file_exists(page: str) -> None:
    words = set(re.findall(r"`([^`\n]+)`", text_of(page)))
    sections = {path.partition(".")[0] for path in config_keys()}
    keys = {word for word in words if re.fullmatch(r"[a-z]+\.[a-z_.]+", word) and word.partition(".")[0] in sections}
    assert keys <= set(config_keys())
    assert keys
    assert {word for word in words if word.startswith("windmill_exporter_c") or word == "windmill_exporter_up"} <= set(
        FAMILIES
    )
    files = set(re.findall(r"(?:deploy|dashboards|docs)/[\w./-]*\w", text_of(page)))
    assert files
    assert {file for file in files if not (PROJECT / file).exists()} == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_command_line_of_ours_is_understood(page: str) -> None:
    """Those in prose and those in blocks."""
    lines = re.findall(r"(?:windmill-exporter |`)(check-\w+[^`\n]*)", text_of(page))
    assert lines
    for line in lines:
        command, *flags = shlex.split(line)
        assert command in COMMANDS
        parse_flags(flags)


def test_the_examples_of_compose_and_kustomize_are_yaml() -> None:
    kustomize, compose = (yaml.safe_load(block) for block in blocks("docs/deployment.md", "yaml"))
    assert set(kustomize) == {"resources", "components"}
    [service] = compose["services"].values()
    assert service["read_only"] is True


def test_the_unit_starts_the_program_with_flags_that_it_knows() -> None:
    [unit] = blocks("docs/deployment.md", "ini")
    [line] = re.findall(r"^ExecStart=(\S+) (.*)$", unit, re.MULTILINE)
    assert line[0].endswith("/bin/windmill-exporter")
    assert parse_flags(line[1].split()) == {"database.url_file": "%d/url"}
    assert re.findall(r"^\[(\w+)\]", unit, re.MULTILINE) == ["Unit", "Service", "Install"]
