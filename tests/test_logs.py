"""Log lines: one per record whatever it holds, readable by machines, and without passwords."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.config import LogConfig
from exporter.logs import MAX_FIELD_CHARACTERS, JsonFormatter, LogfmtFormatter, configure_logging, redact
from tests.sources import PROJECT

HOSTILE = 'a\nts=1 level=error msg="x"\r\x1b[31m\u2028\u202e\x9b"\\ \ud800 é 日本 🦆'

Configure = Callable[[LogConfig], io.StringIO]


@pytest.fixture
def configure() -> Iterator[Configure]:
    """Configures logging into a string, and puts back what the test runner had."""
    root, own = logging.getLogger(), logging.getLogger("exporter")
    before = (list(root.handlers), root.level, own.level)

    def into_string(config: LogConfig) -> io.StringIO:
        stream = io.StringIO()
        configure_logging(config, stream)
        return stream

    yield into_string
    root.handlers[:], level, own_level = before
    root.setLevel(level)
    own.setLevel(own_level)
    logging.captureWarnings(capture=False)


def record(message: str = "hello", **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("exporter.x", logging.WARNING, "x.py", 1, message, (), None)
    made.created = 1_700_000_000.25
    vars(made).update(extra)
    return made


def test_a_logfmt_line_begins_with_time_level_logger_and_message() -> None:
    line = LogfmtFormatter().format(record("two words", tag="deno", seconds=1.5, jobs=3, ok=True, nothing=None))
    assert line == (
        "ts=2023-11-14T22:13:20.250Z level=warning logger=exporter.x "
        'msg="two words" tag=deno seconds=1.5 jobs=3 ok=true nothing=null'
    )


def test_a_json_line_holds_the_same_fields_with_their_types() -> None:
    line = JsonFormatter().format(record("two words", tag="deno", seconds=1.5, jobs=3, ok=True, nothing=None))
    assert json.loads(line) == {
        "ts": "2023-11-14T22:13:20.250Z",
        "level": "warning",
        "logger": "exporter.x",
        "msg": "two words",
        "tag": "deno",
        "seconds": 1.5,
        "jobs": 3,
        "ok": True,
        "nothing": None,
    }


def test_json_never_holds_nan_or_infinity() -> None:
    line = JsonFormatter().format(record(share=float("nan"), wait=float("inf")))
    assert json.loads(line, parse_constant=pytest.fail)["share"] == "nan"


@pytest.mark.parametrize("formatter", [LogfmtFormatter(), JsonFormatter()], ids=["logfmt", "json"])
def test_a_hostile_text_stays_on_its_line_and_in_its_field(formatter: logging.Formatter) -> None:
    line = formatter.format(record(HOSTILE, workspace=HOSTILE))
    assert line.isprintable()
    assert "é 日本 🦆" in line
    assert len(re.findall(r'^ts=|\\n" ts=|"ts": ', line)) == 1


@given(st.text(max_size=100), st.text(max_size=100))
def test_json_gives_back_every_text(message: str, tag: str) -> None:
    line = JsonFormatter().format(record(message.replace("%", ""), tag=tag))
    assert line.isprintable()
    assert json.loads(line)["tag"] == redact(tag)


@given(st.text(max_size=100))
def test_every_logfmt_value_is_a_bare_word_or_a_json_text(tag: str) -> None:
    value = LogfmtFormatter().format(record(tag=tag)).partition(" tag=")[2]
    assert (value if re.fullmatch(r"[\w.:/@%+,-]+", value) else json.loads(value)) == redact(tag)


def test_a_field_cannot_replace_the_time_or_the_level() -> None:
    fields = json.loads(JsonFormatter().format(record("said", ts="never", level="none", logger="nobody")))
    assert (fields["ts"][:4], fields["level"], fields["logger"]) == ("2023", "warning", "exporter.x")


def test_a_traceback_is_one_field_of_the_same_line() -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        made = record("failed")
        made.exc_info = sys.exc_info()
    line = LogfmtFormatter().format(made)
    assert line.isprintable()
    assert r"\nValueError: a\nts=1" in line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("connecting to postgres://app:hunter2@db:5432/w failed", "connecting to postgres://app:***@db:5432/w failed"),
        ("postgres://app:hun@ter2/x@db/w", "postgres://app:***@db/w"),
        ("postgres://:hunter2@db", "postgres://:***@db"),
        (
            "postgres://db/w?user=a&password=hunter2&sslmode=require",
            "postgres://db/w?user=a&password=***&sslmode=require",
        ),
        ("host=db PASSWORD=hunter2 user=a", "host=db PASSWORD=*** user=a"),
        ("sslpassword=hunter2", "sslpassword=***"),
        ("http://localhost:9480/metrics", "http://localhost:9480/metrics"),
        ("postgres://app@db/w", "postgres://app@db/w"),
    ],
)
def test_passwords_are_hidden_and_nothing_else(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_passwords_are_hidden_in_messages_fields_and_tracebacks(configure: Configure) -> None:
    stream = configure(LogConfig())
    url = "postgres://app:hunter2@db/w"
    try:
        raise ValueError(url)
    except ValueError:
        logging.getLogger("anybody").exception("lost %s", url, extra={"target": url, "urls": [url]})
    assert "hunter2" not in stream.getvalue()
    assert stream.getvalue().count("app:***@db/w") == 4


def test_a_huge_text_is_cut() -> None:
    line = LogfmtFormatter().format(record("x" * 1_000_000, tag="://:" * 100_000))
    assert len(line) < 2 * MAX_FIELD_CHARACTERS + 200


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_the_level_is_the_least_severity(
    configure: Configure, level: Literal["debug", "info", "warning", "error"], expected: list[str]
) -> None:
    stream = configure(LogConfig(level=level, format="json"))
    for severity in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logging.getLogger("exporter.anything").log(severity, "x")
    assert [json.loads(line)["level"] for line in stream.getvalue().splitlines()] == expected


def test_debug_lines_of_libraries_stay_out(configure: Configure) -> None:
    stream = configure(LogConfig(level="debug"))
    logging.getLogger("asyncio").debug("Using selector")
    logging.getLogger("asyncio").info("Something happened")
    assert "selector" not in stream.getvalue()
    assert "Something happened" in stream.getvalue()


def test_configuring_again_does_not_double_the_lines(configure: Configure) -> None:
    configure(LogConfig())
    stream = configure(LogConfig(format="json"))
    logging.getLogger("exporter").info("once")
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == ["once"]


def test_logs_go_to_stderr_and_survive_that_nobody_reads_them() -> None:
    """A closed stderr must not end the process, nor put a traceback anywhere."""
    program = (
        "import logging; from exporter.config import LogConfig; from exporter.logs import configure_logging;"
        "configure_logging(LogConfig()); logging.getLogger('exporter').info('caf\\u00e9'); print('done')"
    )
    command = f'exec {sys.executable} -c "{program}"'
    outcome = subprocess.run(["sh", "-c", command], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert outcome.stdout == "done\n"
    assert outcome.stderr.endswith('msg="café"\n')
    closed = subprocess.run(["sh", "-c", command + " 2>&-"], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert (closed.stdout, closed.stderr) == ("done\n", "")
