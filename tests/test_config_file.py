"""The YAML file: each kind of mistake has its own message, with its place; nothing in a file can hurt the process."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.config_file import MAX_FILE_BYTES, MAX_PROBLEMS, ConfigFile, FileValues, parse_file
from exporter.config_loading import build_config
from exporter.errors import ConfigError
from tests.configurations import accept
from tests.sources import TESTDATA

BAD_FILES = sorted((TESTDATA / "config").glob("*.yaml"))
DATABASE = {"DATABASE_URL": "postgres://windmill@db/windmill"}


def parse(text: str) -> FileValues:
    return parse_file(ConfigFile("c.yaml", text.encode()))


@pytest.mark.parametrize("path", BAD_FILES, ids=lambda path: path.stem)
def test_every_mistake_in_a_file_has_its_message(path: Path) -> None:
    expected = path.with_suffix(".problems").read_text().splitlines()
    with pytest.raises(ConfigError) as caught:
        build_config({}, DATABASE, ConfigFile("c.yaml", path.read_bytes()), accept)
    assert list(caught.value.problems) == expected


def test_the_bad_files_were_found() -> None:
    assert len(BAD_FILES) > 25


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "\ufeff", "{}", "metrics:\n", "~"])
def test_an_empty_file_gives_nothing_and_no_problem(text: str) -> None:
    assert parse(text) == FileValues({}, [])


def test_values_arrive_as_written_whatever_yaml_would_make_of_them() -> None:
    """YAML 1.1 reads these as false, 90, 10, a date and a number."""
    values = parse(
        "fairness: {mode: off}\nweb: {listen_address: 1:30}\ndatabase: {schema: 2024-01-01, url_file: 012}\n"
    )
    assert values.texts == {
        "fairness.mode": "off",
        "web.listen_address": "1:30",
        "database.schema": "2024-01-01",
        "database.url_file": "012",
    }


def test_only_an_unquoted_null_is_null() -> None:
    values = parse("database: {schema: 'null', url_file: null}")
    assert values.texts == {"database.schema": "null", "database.url_file": None}


def test_anchors_work_for_values_and_sections() -> None:
    assert parse("log: {level: &word debug}\nweb: {route_prefix: *word}").texts["web.route_prefix"] == "debug"


def test_windows_line_ends_and_a_byte_order_mark_are_fine() -> None:
    assert parse("\ufefflog:\r\n  level: debug\r\n").texts == {"log.level": "debug"}


def test_anchors_cannot_multiply() -> None:
    """A billion laughs: nine levels of nine references each."""
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    values = parse("a0: &a0 [lol]\n" + "\n".join(levels) + "\nlog: {level: *a9}")
    assert values.problems[-1] == "log.level: expected one of debug, error, info, warning, got a list"


@pytest.mark.parametrize("opening", ["[", "{", "- ", "? ", "[{", "{a: "])
def test_deep_nesting_is_a_problem_and_not_a_crash(opening: str) -> None:
    assert parse(opening * 5000).problems == ["c.yaml: nested too deeply"]


def test_a_large_file_is_refused_before_it_is_read_as_yaml() -> None:
    problems = parse_file(ConfigFile("c.yaml", b"log: {level: info}\n#" * 600_000)).problems
    assert problems == [f"c.yaml: larger than {MAX_FILE_BYTES // 1024} KiB"]


def test_thousands_of_problems_are_counted_not_listed() -> None:
    problems = parse("".join(f"key_{number}: 1\n" for number in range(5000))).problems
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1] == f"and {5000 - MAX_PROBLEMS} more problems in this file"


def test_no_message_quotes_a_value_of_the_url() -> None:
    for text in (
        "[postgres://u:hunter2@h/d]",
        "{a: postgres://u:hunter2@h/d}",
        "!!binary hunter2",
        "*hunter2",
        "!hunter2",
    ):
        problems = parse(f"database:\n  url: {text}\n").problems
        assert len(problems) == 1
        assert "hunter2" not in problems[0]


@given(st.one_of(st.binary(max_size=200), st.text("abc:-[]{}&*!?|>'\"#%@`, \n\t", max_size=60).map(str.encode)))
def test_no_content_raises_or_breaks_a_line(content: bytes) -> None:
    values = parse_file(ConfigFile("c.yaml", content))
    assert all(problem.isprintable() for problem in values.problems)
