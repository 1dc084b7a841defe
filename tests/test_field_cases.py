"""Every field case is held by a test that exists."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.sources import PROJECT

PAGE = (PROJECT / "docs" / "field-cases.md").read_text()
FAULTS = (
    *(1, 2, 3, 4, 8, 9, 10, 11, 13, 14, 15, 17, 19, 21, 22, 23, 24, 25, 28, 29, 31, 32, 35, 39, 41, 43, 44, 48, 49, 50),
    *(51, 52, 53, 54, 56, 57, 58, 60, 63, 64, 65, 68, 69, 70, 72, 73, 74, 77, 78, 79, 80, 81, 82, 83, 88, 89, 90, 91),
    *(92, 93, 94),
)
FILES = range(1, 15)
CASES = (*(f"F{number:02}" for number in FAULTS), *(f"R{number:02}" for number in FILES))
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[tuple[str, str, str]]:
    """Case, what it is, and what holds it, of every row."""
    return re.findall(r"^\| ([FR]\d\d) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)


@cache
def names_in(path: str) -> frozenset[str]:
    """The names of the tests in a file, those in classes too."""
    tree = ast.parse((PROJECT / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds) and node.name.startswith("test_"))


def test_every_case_has_one_row_in_order() -> None:
    assert tuple(case for case, _, _ in rows()) == CASES


@pytest.mark.parametrize("case", CASES)
def test_every_case_names_tests_that_exist(case: str) -> None:
    [held] = [held for found, _, held in rows() if found == case]
    named = TEST.findall(held)
    assert named
    assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []


def test_a_test_that_names_a_case_names_one_that_exists() -> None:
    """`Field case F32` in a test is no typing error."""
    texts = (path.read_text() for path in (PROJECT / "tests").rglob("*.py"))
    named = {case for text in texts for case in re.findall(r"\b[Ff]ield cases? ([FR]\d\d)\b", text)}
    assert named
    assert named <= set(CASES)
