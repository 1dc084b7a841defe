"""Writes the reference pages from the code that they describe: `python -m docs.build`, and `--check` in a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from exporter.config_keys import Key, config_keys
from exporter.metrics.reference import reference_table

DOCS = Path(__file__).parent

CONFIGURATION = """\
# Configuration reference

Everything runs on `DATABASE_URL` alone. A flag wins over a variable, a variable over the file (`--config.file`, or
`WINDMILL_EXPORTER_CONFIG_FILE`), the file over the default. An empty variable counts as not set. Every mistake is
reported at once, located, with exit code 2; `windmill-exporter check-config` does only that.

Written by `python -m docs.build` from the configuration tree; [config.example.yaml](../config.example.yaml) is the
same as a file.

SIGHUP, and `POST /-/reload` where `web.enable_lifecycle` allows it, read everything again. What needs a restart keeps
its value until then, and the log names it when it changed.

| key | flag | variable | default | expected | meaning | a change takes effect |
| --- | --- | --- | --- | --- | --- | --- |
"""

METRICS = """\
# Metrics reference

Written by `python -m docs.build` from the one table of families (`exporter/metrics/families.py`). Values that come from
the database are the same on every replica: aggregate them with `max by (...)`, never with `sum`. A reading older than
three of its intervals (at least 30 s) is left out, and the collector's success is 0.

"""


def pages() -> dict[Path, str]:
    """Every generated page with its content."""
    rows = "".join(_row(key) for key in config_keys().values())
    return {DOCS / "configuration.md": CONFIGURATION + rows, DOCS / "metrics.md": METRICS + reference_table()}


def outdated() -> Iterator[Path]:
    """The pages that are not what the code says."""
    for path, content in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            yield path


def main() -> int:
    """Write the pages, or with `--check` name those that are not current."""
    if "--check" in sys.argv[1:]:
        stale = [path.name for path in outdated()]
        sys.stderr.writelines(f"docs/{name} is not current: run python -m docs.build\n" for name in stale)
        return 1 if stale else 0
    for path, content in pages().items():
        path.write_text(content, encoding="utf-8")
    return 0


def _row(key: Key) -> str:
    flag = "none: process lists show flags" if key.secret else f"`{key.flag}`"
    effect = "on reload" if key.live else "after a restart"
    cells = (f"`{key.path}`", flag, f"`{key.variable}`", _default(key), key.expected, key.description, effect)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _default(key: Key) -> str:
    if key.secret or key.default == "":
        return "empty"
    return f"`{'null' if key.default is None else str(key.default).lower()}`"


if __name__ == "__main__":
    sys.exit(main())
