"""Where the tests find the files that they read."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).parent.parent
WINDMILL_SCHEMA = PROJECT / "tests" / "schema" / "windmill.sql"
CASES = PROJECT / "tests" / "cases"
TESTDATA = PROJECT / "tests" / "testdata"
