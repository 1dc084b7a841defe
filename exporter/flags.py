"""The flags of the command line, one for each key of the configuration: texts by path, as `build_config` takes them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NoReturn

from msgspec import inspect

from exporter import __version__
from exporter.config_file import suggest
from exporter.config_keys import Key, config_keys, show
from exporter.config_loading import CONFIG_FILE, CONFIG_FILE_VARIABLE
from exporter.errors import ConfigError

PLAIN_FLAG = re.compile(r"-[\w.-]{1,60}")

PROGRAM = "windmill-exporter"
DESCRIPTION = """\
Per-workspace fairness and queue metrics of a Windmill database, for Prometheus and Grafana.

commands:
  run             serve metrics; the default
  check-config    report every problem of the configuration and exit
  check-database  report what the database lacks, with the GRANT that cures it
  healthcheck     ask the replica that runs here with the same configuration whether it lives; exit code 0 or 1
  demo            a simulated cluster on an embedded PostgreSQL; see demo --help

Everything runs on DATABASE_URL alone (or DATABASE_URL_FILE, which wins). Each flag is also a variable
(--metrics.max-tags: WINDMILL_EXPORTER_METRICS_MAX_TAGS) and a key of the file (metrics.max_tags).
A flag wins over a variable, a variable over the file, the file over the default."""


class Parser(argparse.ArgumentParser):
    """Without abbreviations, and reporting by `ConfigError` instead of printing and exiting."""

    def __init__(self, program: str, description: str) -> None:
        super().__init__(
            prog=program,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """The command line cannot be parsed."""
        raise ConfigError([f"{message}; see {self.prog} --help"])


class Once(argparse.Action):
    """Stores the text of a flag, which may be given once: of two, one would be ignored without a word."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 -- the signature of the base class, here and below
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """Called by the parser for each occurrence."""
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "given twice")
        setattr(namespace, self.dest, values)


def parse_flags(arguments: Sequence[str]) -> Mapping[str, str]:
    """The text of each flag given, by path. Raises `ConfigError` for unknown ones; `--help` and `--version` exit."""
    parser = _build_parser()
    known, rest = parser.parse_known_args(arguments)
    if rest:
        raise ConfigError(_unknown(rest))
    return {path: text for path, text in vars(known).items() if text is not None}


def _build_parser() -> Parser:
    parser = Parser(PROGRAM, DESCRIPTION)
    parser.usage = "%(prog)s [run | check-config | check-database | healthcheck | demo] [--flag=value ...]"
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.add_argument(
        "--config.file",
        dest=CONFIG_FILE,
        action=Once,
        metavar="PATH",
        help=f"YAML file (variable {CONFIG_FILE_VARIABLE})",
    )
    for section, keys in groupby(config_keys().values(), lambda key: key.path.rpartition(".")[0]):
        group = parser.add_argument_group(section)
        for key in keys:
            _add_flag(group, key)
    return parser


def _add_flag(group: argparse._ArgumentGroup, key: Key) -> None:
    if key.secret:
        # Known, so that its value is not mistaken for anything else; `build_config` refuses it by name.
        group.add_argument(key.flag, dest=key.path, action=Once, help=argparse.SUPPRESS)
    elif isinstance(key.form, inspect.BoolType):
        group.add_argument(
            key.flag, dest=key.path, action=Once, metavar="BOOL", nargs="?", const="true", help=_help(key)
        )
    else:
        group.add_argument(key.flag, dest=key.path, action=Once, metavar="VALUE", help=_help(key))


def _help(key: Key) -> str:
    default = "none" if key.default is None else str(key.default) or "empty"
    if isinstance(key.default, (bool, float)):
        default = f"{key.default:g}" if isinstance(key.default, float) else default.lower()
    return f"{key.description}; {key.expected} (default {default})".replace("%", "%%")


def _unknown(rest: Sequence[str]) -> Sequence[str]:
    """Names only, never values: what follows a mistyped flag may be a URL with a password."""
    known = ["--config.file", *(key.flag for key in config_keys().values() if not key.secret)]
    names = [argument.partition("=")[0] for argument in rest if argument.startswith("-")]
    if not names:
        return ["an argument that is no flag; flags look like --web.listen-address=:9480"]
    return [
        f"{name if PLAIN_FLAG.fullmatch(name) else show(name)}: unknown flag{suggest(name, known)}" for name in names
    ]
