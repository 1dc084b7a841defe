"""The command line: `run` (default), `check-config`, `check-database`, `healthcheck`, `demo`.

Exit codes: 0 done, 1 failed, 2 the command line or the configuration cannot be used (each problem on a line of stderr).
Only what a command needs is imported, so that the sidecar starts fast.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from exporter.errors import ConfigError, DatabaseUnavailable, ExporterError, HealthcheckFailed

if TYPE_CHECKING:
    from exporter.config_loading import LoadedConfig
    from exporter.database.target import Target

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2

# The metrics client looks at them when it is imported and would write files; a pod's shared environment may hold them.
MULTIPROCESS_VARIABLES = ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir")

logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Problems that were foreseen are sentences on stderr, never tracebacks."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments.pop(0) if arguments and not arguments[0].startswith("-") else "run"
    try:
        if name not in COMMANDS:
            raise ConfigError([f"unknown command; the commands are {', '.join(COMMANDS)}"])
        return COMMANDS[name](arguments)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    except ExporterError as error:
        print(error, file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_FAILED


def run(arguments: Sequence[str]) -> int:
    """Serve until stopped. A database that is away, or a URL file that is not there yet, is waited for."""
    loaded, target = _load(arguments)
    with contextlib.suppress(DatabaseUnavailable):
        target()

    from exporter.logs import configure_logging

    configure_logging(loaded.config.log)
    for warning in (*loaded.warnings, *_ignored_variables(os.environ)):
        logger.warning(warning)
    for name in MULTIPROCESS_VARIABLES:
        os.environ.pop(name, None)

    import asyncio

    from exporter.process import serve

    return asyncio.run(serve(loaded.config, target, lambda: _load(arguments)))


def check_config(arguments: Sequence[str]) -> int:
    """Report what is wrong with the configuration, and what is only worth a warning. Connects to nothing."""
    loaded, target = _load(arguments)
    from exporter.web.security.web_files import WebFiles

    WebFiles(loaded.config.web.config.file).load()
    try:
        url_warnings = target().warnings
    except DatabaseUnavailable as error:
        url_warnings = (f"{error}; the service retries",)
    _print_warnings((*loaded.warnings, *url_warnings))
    print("the configuration is valid")
    return EXIT_OK


def check_database(arguments: Sequence[str]) -> int:
    """Report what the database offers to the configured modes and what it lacks. Writes nothing, retries nothing."""
    loaded, target = _load(arguments)
    _print_warnings((*loaded.warnings, *target().warnings))

    import asyncio

    from exporter.check_database import survey
    from exporter.check_report import render

    # Whoever cannot connect is told so by the error; the connector's log lines would say it twice.
    logging.getLogger("exporter").addHandler(logging.NullHandler())
    found = asyncio.run(survey(loaded.config, target))
    print(render(found))
    return EXIT_OK if found.complete else EXIT_FAILED


def healthcheck(arguments: Sequence[str]) -> int:
    """Ask the replica that runs with the same configuration on this host whether it lives; 0 or 1, as Docker wants."""
    from exporter.healthcheck import ask

    try:
        loaded, _ = _load(arguments)
        ask(loaded.config.web)
    except (ConfigError, HealthcheckFailed) as error:
        print(error, file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def demo(arguments: Sequence[str]) -> int:
    """The simulated cluster."""
    from exporter.demo.run import add_arguments
    from exporter.demo.run import main as run_demo
    from exporter.flags import PROGRAM, Parser

    parser = Parser(f"{PROGRAM} demo", "A simulated Windmill cluster on an embedded PostgreSQL, with the exporter.")
    add_arguments(parser)
    return run_demo(parser.parse_args(arguments))


COMMANDS = MappingProxyType(
    {
        "run": run,
        "check-config": check_config,
        "check-database": check_database,
        "healthcheck": healthcheck,
        "demo": demo,
    }
)


def _print_warnings(warnings: Sequence[str]) -> None:
    for warning in (*warnings, *_ignored_variables(os.environ)):
        print(f"warning: {warning}", file=sys.stderr)


def _load(arguments: Sequence[str]) -> tuple[LoadedConfig, Callable[[], Target]]:
    """The configuration, and what yields the database's target whenever it is asked, from the file if it is in one."""
    from exporter.config_loading import load_config, read_database_url
    from exporter.database.url import parse_url
    from exporter.flags import parse_flags

    loaded = load_config(parse_flags(arguments), os.environ, parse_url)
    database = loaded.config.database
    where = f"database.url_file {database.url_file}" if database.url_file else "database.url"
    return loaded, lambda: parse_url(read_database_url(database), where)


def _ignored_variables(environ: Mapping[str, str]) -> Sequence[str]:
    """Warnings about variables of other programs that the exporter does not obey."""
    from exporter.database.url import ignored_environment

    metrics = [f"{name}: ignored, the exporter is one process" for name in MULTIPROCESS_VARIABLES if name in environ]
    database = ignored_environment(environ)
    return [*metrics, database] if database else metrics
