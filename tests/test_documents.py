"""What an operator can set or call is documented."""

from __future__ import annotations

import re

import pytest

from docs.build import outdated
from exporter.cli import COMMANDS
from exporter.config_keys import config_keys
from tests.sources import PROJECT

DOCUMENTS = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/admission.md",
    "docs/status-page.md",
    "docs/web-config.md",
)


def test_the_changelog_lists_every_key_and_command() -> None:
    quoted = set(re.findall(r"`([^`]+)`", (PROJECT / "CHANGELOG.md").read_text()))
    assert set(config_keys()) | set(COMMANDS) <= quoted


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_key_that_a_document_names_exists(name: str) -> None:
    sections = {path.partition(".")[0] for path in config_keys()}
    named = re.findall(r"`([a-z]+(?:\.[a-z_]+)+)(?::[^`]*)?`", (PROJECT / name).read_text())
    keys = [key for key in named if key.partition(".")[0] in sections and not key.endswith((".py", ".yaml"))]
    assert [key for key in keys if key not in config_keys()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_to_a_file_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (PROJECT / name).read_text())
    assert [link for link in links if not ((PROJECT / name).parent / link).exists()] == []


def test_the_first_screen_of_the_readme_names_the_two_commands() -> None:
    first_screen = "\n".join((PROJECT / "README.md").read_text().splitlines()[:20])
    assert "make demo" in first_screen
    assert "make test" in first_screen


def test_the_reference_pages_are_what_the_code_says() -> None:
    assert [path.name for path in outdated()] == []
