"""What an operator can set, call or read is documented, and what is documented is there."""

from __future__ import annotations

import re
import shlex
from urllib.parse import urlsplit

import pytest

from docs.build import outdated
from exporter.cli import COMMANDS
from exporter.config_keys import config_keys
from exporter.fairness.values import FairnessState
from exporter.metrics.families import FAMILIES
from exporter.metrics.own import FAILURE_REASONS
from exporter.web.app import GET_ROUTES, POST_ROUTES
from tests.sources import PROJECT

PAGES = tuple(f"docs/{path.name}" for path in sorted((PROJECT / "docs").glob("*.md")))
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", *PAGES)
# They take no body and change something: the application adds them apart from the tables of its routes.
ACTIONS = {"/-/reload"}


def text_of(name: str) -> str:
    return (PROJECT / name).read_text()


def quoted_in(*names: str) -> set[str]:
    """Whatever stands between backticks."""
    return {word for name in names for word in re.findall(r"`([^`\n]+)`", text_of(name))}


def documented_endpoints(name: str) -> set[tuple[str, str]]:
    """Method and path, as in `GET /metrics`."""
    return set(re.findall(r"`(GET|POST) (/[^`?\s]*)`", text_of(name)))


def endpoints() -> set[tuple[str, str]]:
    """Method and path of everything that the application answers to."""
    gets = {("GET", path) for path in GET_ROUTES}
    return gets | {("POST", path) for path in (*POST_ROUTES, *ACTIONS)}


def anchors_of(name: str) -> set[str]:
    """The anchors of a page's headings, as they are made on the usual forges."""
    headings = re.findall(r"^#+ (.+)$", text_of(name), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_changelog_lists_every_key_command_and_metric() -> None:
    ours = {name for name in FAMILIES if name.startswith("windmill_")}
    assert ours
    assert set(config_keys()) | set(COMMANDS) | ours <= quoted_in("CHANGELOG.md")


def test_every_endpoint_is_documented_and_every_documented_one_exists() -> None:
    assert documented_endpoints("docs/http.md") == endpoints()


def test_the_changelog_lists_every_endpoint() -> None:
    assert {(method, path) for method, path in endpoints() if not path.startswith("/assets/")} <= documented_endpoints(
        "CHANGELOG.md"
    )


def test_every_endpoint_has_an_example_that_asks_for_it() -> None:
    commands = re.findall(r"^curl (.+)$", text_of("docs/http.md"), re.MULTILINE)
    asked = set()
    for command in commands:
        words = shlex.split(command, comments=True)
        [url] = [word for word in words if word.startswith("localhost:9480")]
        method = "POST" if "-d" in words or "POST" in words else "GET"
        asked.add((method, urlsplit(f"//{url}").path))
    assert asked == {(method, path) for method, path in endpoints() if not path.startswith("/assets/")}


def test_every_key_flag_variable_and_metric_is_documented() -> None:
    words = quoted_in(*PAGES)
    keys = config_keys()
    assert set(keys) | {key.variable for key in keys.values()} <= words
    assert {key.flag for key in keys.values() if not key.secret} <= words
    assert set(FAMILIES) <= words


def test_every_state_and_every_reason_is_explained() -> None:
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", text_of("docs/troubleshooting.md"), re.MULTILINE)
    explained = {word for row in rows for word in re.findall(r"`([a-z_]+)`", row)}
    assert {state.value for state in FairnessState} | set(FAILURE_REASONS) <= explained


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_key_that_a_document_names_exists(name: str) -> None:
    sections = {path.partition(".")[0] for path in config_keys()}
    named = re.findall(r"`([a-z]+(?:\.[a-z_]+)+)(?::[^`]*)?`", text_of(name))
    keys = [key for key in named if key.partition(".")[0] in sections and not key.endswith((".py", ".yaml", ".md"))]
    parents = {path.rpartition(".")[0] for path in config_keys()}
    assert [key for key in keys if key not in config_keys() and key not in parents] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_somewhere(name: str) -> None:
    for link in re.findall(r"\]\(([^):]+)\)", text_of(name)):
        path, _, anchor = link.partition("#")
        target = (PROJECT / name).parent / path if path else PROJECT / name
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(str(target.resolve().relative_to(PROJECT))), link


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_file_and_benchmark_that_a_document_names_exists(name: str) -> None:
    named = re.findall(r"`((?:exporter|tests|docs|deploy|dashboards|benchmarks)/[\w./-]+)`", text_of(name))
    assert [path for path in named if not (PROJECT / path).exists()] == []
    benchmarks = re.findall(r"BENCH=(\w+)", text_of(name))
    assert [one for one in benchmarks if one != "name" and not (PROJECT / f"benchmarks/{one}.py").exists()] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    assert [page for page in PAGES if f"({page}" not in text_of("README.md")] == []


def test_every_module_of_the_architecture_is_there() -> None:
    named = set(re.findall(r"`((?:\w+/)*\w+\.(?:py|sql))`", text_of("ARCHITECTURE.md")))
    assert named
    assert {
        name for name in named if not any(PROJECT.glob(f"[de]*/**/{name}")) and not (PROJECT / name).exists()
    } == set()


def test_the_first_screen_of_the_readme_names_the_two_commands() -> None:
    first_screen = "\n".join(text_of("README.md").splitlines()[:20])
    assert "make demo" in first_screen
    assert "make test" in first_screen


def test_the_readme_installs_what_the_tests_install() -> None:
    """Packages of the script and of the text."""
    packages = set(re.findall(r'missing="\$missing ([\w-]+)"', text_of("tests/install-packages.sh")))
    assert packages
    assert packages <= quoted_in("README.md")


def test_the_reference_pages_are_what_the_code_says() -> None:
    assert [path.name for path in outdated()] == []
