"""The command `demo`: what it prints and serves, how it ends, and which options it refuses."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.cli import main
from exporter.demo.postgres import UNPRIVILEGED_ID
from tests.sources import PROJECT

# Imports happen in a first run: an interpreter under /root is out of reach after the change of user.
AS_SOMEBODY_ELSE = f"""
import os, sys
from exporter.cli import main
codes = [main(["demo", "--seconds", "2", "--workers", "5"])]
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({UNPRIVILEGED_ID}); os.setuid({UNPRIVILEGED_ID})
os.environ.pop("HOME", None)
codes.append(main(["demo", "--seconds", "2", "--workers", "5"]))
sys.exit(max(codes))
"""


@pytest.fixture
def temporary_directory() -> Iterator[Path]:
    """A place for the demo's files that its server may reach too; what is left there was left behind."""
    directory = Path(tempfile.mkdtemp(prefix="demo-run-"))
    directory.chmod(0o1777)
    yield directory
    shutil.rmtree(directory)


def start(temporary_directory: Path, *command: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "TMPDIR": str(temporary_directory)}
    return subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def start_demo(temporary_directory: Path, *options: str) -> subprocess.Popen[str]:
    return start(temporary_directory, "-m", "exporter", "demo", *options)


def read_until(demo: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    assert demo.stdout is not None
    for line in demo.stdout:
        if match := re.search(pattern, line):
            return match
    raise AssertionError(f"{pattern} was not printed: {demo.communicate()[1]}")


def test_it_shows_the_noisy_tenant_being_capped_and_serves_it_as_metrics(temporary_directory: Path) -> None:
    demo = start_demo(temporary_directory)
    url = read_until(demo, r"metrics: (http://127\.0\.0\.1:\d+/metrics)")[1]
    read_until(demo, r"^tenant +share +capped +waiting +wait p50 +wait p95$")
    read_until(demo, r"^noisy +\d+\.\d % +yes +\d+")
    with urllib.request.urlopen(url) as answer:  # noqa: S310 -- the demo's own address
        page = answer.read().decode()
    assert 'windmill_fairness_capped{workspace="noisy"} 1' in page
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=30)
    assert (demo.returncode, errors) == (0, "")
    assert list(temporary_directory.iterdir()) == []


def test_sigterm_ends_it_as_cleanly(temporary_directory: Path) -> None:
    demo = start_demo(temporary_directory)
    read_until(demo, "Ctrl-C ends it")
    demo.terminate()
    _, errors = demo.communicate(timeout=30)
    assert (demo.returncode, errors) == (0, "")
    assert list(temporary_directory.iterdir()) == []


def test_ctrl_c_while_postgresql_starts_ends_it_as_cleanly(temporary_directory: Path) -> None:
    demo = start_demo(temporary_directory)
    read_until(demo, "starting PostgreSQL")
    time.sleep(0.2)
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=30)
    assert (demo.returncode, errors) == (0, "")
    assert list(temporary_directory.iterdir()) == []


def test_with_fairness_off_nobody_is_capped(temporary_directory: Path) -> None:
    demo = start_demo(temporary_directory, "--fairness=off", "--seconds=6", "--workers=10")
    output, errors = demo.communicate(timeout=30)
    assert (demo.returncode, errors) == (0, "")
    rows = re.findall(r"^noisy +(\S+) (?:% )? *(yes|no)", output, re.MULTILINE)
    assert rows
    assert {capped for _, capped in rows} == {"no"}


def test_it_runs_for_root_and_for_an_unprivileged_user_without_a_home(temporary_directory: Path) -> None:
    demo = start(temporary_directory, "-c", AS_SOMEBODY_ELSE)
    output, errors = demo.communicate(timeout=60)
    assert (demo.returncode, errors) == (0, "")
    assert output.count("/metrics") == 2
    assert list(temporary_directory.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "0"], "--workers: expected a number from 1 to 500, got '0'"),
        (["--workers", "many"], "--workers: expected a number from 1 to 500, got 'many'"),
        (["--workers", "2.5"], "--workers: expected a number from 1 to 500, got '2.5'"),
        (["--seconds", "-1"], "--seconds: expected a number from 1 to 86400, got '-1'"),
        (["--seconds", "nan"], "--seconds: expected a number from 1 to 86400, got 'nan'"),
        (["--quiet-load", "1000"], "--quiet-load: expected a number from 1 to 200, got '1000'"),
        (["--port", "65536"], "--port: expected a number from 0 to 65535, got '65536'"),
        (["--seed", "x"], "--seed: invalid int value: 'x'"),
        (["--fairness", "maybe"], "--fairness: invalid choice: 'maybe'"),
        (["--compare", "--seconds", "20"], "--seconds: --compare measures from second 20 on, use more"),
    ],
)
def test_impossible_options_are_refused_by_name(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *options]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
