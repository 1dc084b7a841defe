"""The suite's own rules: blocked loops and forgotten tasks fail a test, and with CI=true nothing is skipped.

Each case runs a small suite with our plugins in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.requirements import find_program
from tests.sources import PROJECT

SUITE = """
import asyncio, threading, time
import pytest

async def test_sleeps_in_a_callback():
    time.sleep(0.6)

async def test_computes_in_a_callback():
    end = time.thread_time() + 0.6
    while time.thread_time() < end:
        pass

@pytest.mark.may_block("a measured reason")
async def test_says_why_it_blocks():
    time.sleep(0.6)

async def test_waits_politely():
    await asyncio.sleep(0.6)

async def test_works_in_a_thread():
    await asyncio.to_thread(time.sleep, 0.6)

async def test_forgets_a_task():
    asyncio.create_task(asyncio.sleep(60), name="forgotten")

async def test_has_a_task_that_just_ends():
    asyncio.create_task(asyncio.sleep(0.05))

def test_is_no_coroutine():
    time.sleep(0.6)
"""
NEEDY = """
import pytest

@pytest.mark.needs("no-such-program")
def test_needs_a_program():
    pass

@pytest.mark.needs("sh")
def test_has_its_program():
    pass

def test_skips_itself():
    pytest.skip("for no good reason")
"""

RunSuite = Callable[[str, Mapping[str, str]], subprocess.CompletedProcess[str]]


@pytest.fixture
def run_suite(tmp_path: Path) -> RunSuite:
    def run(text: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_inner.py").write_text(text)
        (tmp_path / "conftest.py").write_text('pytest_plugins = ("tests.guards", "tests.requirements")\n')
        (tmp_path / "pytest.ini").write_text(
            "[pytest]\nasyncio_mode = auto\naddopts = --strict-markers -ra -p no:cacheprovider"
        )
        inherited = {name: value for name, value in os.environ.items() if name != "CI" and "PYTEST" not in name}
        return subprocess.run(
            [sys.executable, "-m", "pytest", str(tmp_path)],
            env={**inherited, "PYTHONPATH": str(PROJECT), "COLUMNS": "200", **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_blocked_loop_and_a_forgotten_task_fail_their_test_and_no_other(run_suite: RunSuite) -> None:
    outcome = run_suite(SUITE, {})
    complaints = [line.partition(" - ") for line in outcome.stdout.splitlines() if line.startswith("ERROR ")]
    assert {where.rpartition("::")[2]: what[:29] for where, _, what in complaints} == {
        "test_sleeps_in_a_callback": "Failed: the event loop was bl",
        "test_computes_in_a_callback": "Failed: the event loop was bl",
        "test_forgets_a_task": "Failed: left behind: <Task pe",
    }
    assert "name='forgotten'" in outcome.stdout
    assert "8 passed" in outcome.stdout


def test_a_missing_program_skips_its_test_with_the_reason(run_suite: RunSuite) -> None:
    outcome = run_suite(NEEDY, {})
    assert outcome.returncode == 0
    assert "no-such-program is not installed (Debian: package no-such-program)" in outcome.stdout
    assert "1 passed, 2 skipped" in outcome.stdout


def test_continuous_integration_turns_every_skip_into_a_failure(run_suite: RunSuite) -> None:
    outcome = run_suite(NEEDY, {"CI": "true"})
    assert outcome.returncode == 1
    assert "skipped, which CI=true forbids" in outcome.stdout
    assert "for no good reason" in outcome.stdout
    # A skip in the setup is reported as an error, one in the test as a failure.
    assert "1 failed, 1 passed, 1 error" in outcome.stdout


def test_programs_are_found_where_debian_keeps_servers() -> None:
    assert find_program("sh") is not None
    assert find_program("no-such-program") is None
