"""Log lines on stderr: one record, one line, as logfmt or JSON, with UTC times and the fields given as `extra`.

Workspaces, tags and server messages are hostile texts: whatever could end a line, move a cursor or turn the reading
direction is escaped. A password in a URL is hidden in every field, tracebacks included, whoever logged it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import IO

from exporter.config import LogConfig

MAX_FIELD_CHARACTERS = 16_384

BARE = re.compile(r"[\w.:/@%+,-]+", re.ASCII)
# Up to the last @ of the word: a password with an unescaped @ or / must not show its second half. Bounded, so that a
# hostile text cannot make the search quadratic.
URL_PASSWORD = re.compile(r"(://[^\s:/@]{0,255}:)\S{1,1024}@")
PARAMETER_PASSWORD = re.compile(r"(password=)[^\s&]+", re.IGNORECASE)

OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure_logging(config: LogConfig, stream: IO[str] | None = None) -> None:
    """Send every log of this process to `stream` (default: stderr). Replaces what was configured before."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if config.format == "json" else LogfmtFormatter())
    level = logging.getLevelNamesMapping()[config.level.upper()]
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(level, logging.INFO))  # the debug lines of libraries are about them, and may hold what is secret
    logging.getLogger("exporter").setLevel(level)
    logging.captureWarnings(capture=True)


class LogfmtFormatter(logging.Formatter):
    """`ts=... level=info logger=exporter.service msg="..." key=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return " ".join(f"{name}={_logfmt(value)}" for name, value in _fields(self, record).items())


class JsonFormatter(logging.Formatter):
    """One JSON object a line, with the same fields as logfmt; numbers and booleans stay what they are."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return _printable(json.dumps(_fields(self, record), ensure_ascii=False))


def redact(text: str) -> str:
    """`text` without the passwords of URLs and of `password=` parameters."""
    return PARAMETER_PASSWORD.sub(r"\1***", URL_PASSWORD.sub(r"\1***@", text))


def _fields(formatter: logging.Formatter, record: logging.LogRecord) -> Mapping[str, object]:
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields: dict[str, object] = {
        "ts": time,
        "level": record.levelname.lower(),
        "logger": record.name,
        "msg": _text(record.getMessage()),
    }
    for name, value in vars(record).items():
        if name not in OWN_ATTRIBUTES and name not in fields:
            fields[name] = value if value is None or isinstance(value, (bool, int)) else _number_or_text(value)
    if record.exc_info and record.exc_info[0]:
        fields["error"] = _text(formatter.formatException(record.exc_info))
    if record.stack_info:
        fields["stack"] = _text(record.stack_info)
    return fields


def _number_or_text(value: object) -> object:
    # NaN and infinity are no JSON.
    return value if isinstance(value, float) and value - value == 0 else _text(str(value))


def _text(text: str) -> str:
    shown = redact(text)
    return shown if len(shown) <= MAX_FIELD_CHARACTERS else shown[:MAX_FIELD_CHARACTERS] + "..."


def _logfmt(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = str(value)
    return text if BARE.fullmatch(text) else _printable(json.dumps(text, ensure_ascii=False))


def _printable(line: str) -> str:
    """`line` with everything that does not print escaped as in JSON."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)
