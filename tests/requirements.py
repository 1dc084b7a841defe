"""Programs that are no Python packages: a test names them with `@pytest.mark.needs("promtool")`.

Where one is missing the test is skipped with the reason. With CI=true nothing may be skipped, for whatever reason: a
skip counts as a failure.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

# Debian's place for servers is not on everybody's path.
SEARCH_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
PACKAGES = {"promtool": "prometheus", "psql": "postgresql-client", "node": "nodejs", "chromium": "chromium"}


def find_program(name: str) -> Path | None:
    """The full path of a program, or None."""
    found = shutil.which(name, path=SEARCH_PATH)
    return Path(found) if found else None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*programs): programs that the test starts")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for program in marker.args:
            if find_program(program) is None:
                pytest.skip(f"{program} is not installed (Debian: package {PACKAGES.get(program, program)})")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI=true forbids: {report.longrepr}"
    return report
