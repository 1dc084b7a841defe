"""Programs of the operating system that some tests run."""

from __future__ import annotations

import os
import shutil

import pytest


def program(name: str, package: str) -> str:
    """Its path. Where it is missing the test is skipped, and fails under CI=true."""
    path = shutil.which(name)
    if path is not None:
        return path
    reason = f"{name} is not installed (Debian package {package})"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
