"""Fills the configuration tree: flag, environment, file, default, in this order. Reports every problem at once.

`build_config` is pure; `load_config` and `read_database_url` are the edge that touches files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from exporter.config import Config, DatabaseConfig, Secret
from exporter.config_file import MAX_FILE_BYTES, ConfigFile, parse_file, suggest
from exporter.config_keys import VARIABLE_PREFIX, Key, build_tree, config_keys, show
from exporter.errors import ConfigError, DatabaseUnavailable

CONFIG_FILE = "config.file"
CONFIG_FILE_VARIABLE = VARIABLE_PREFIX + "CONFIG_FILE"

URL = "database.url"
URL_FILE = "database.url_file"
# Windmill's own variables for its database; ours, with the prefix, win over them.
WINDMILL_VARIABLES = MappingProxyType({URL: "DATABASE_URL", URL_FILE: "DATABASE_URL_FILE"})
MAX_URL_BYTES = 64 * 1024

# Kubernetes gives every container such variables for a Service named windmill-exporter.
SERVICE_VARIABLE = re.compile(
    VARIABLE_PREFIX + r"(?:SERVICE_(?:HOST|PORT)\w*|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)

# Called with a connection URL and with where it comes from, for messages.
CheckUrl = Callable[[str, str], object]


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration that can run, and sentences about what was ignored on the way."""

    config: Config
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Layer:
    """The texts that one kind of source gives, by path; `source` names one of them for a message."""

    texts: Mapping[str, str | None]
    source: Callable[[Key], str]
    is_file: bool = False


def load_config(flags: Mapping[str, str], environ: Mapping[str, str], check_url: CheckUrl) -> LoadedConfig:
    """`build_config` with the file that the flag `config.file` or its variable names. Raises `ConfigError`."""
    path = flags.get(CONFIG_FILE) or environ.get(CONFIG_FILE_VARIABLE)
    keys = {name: text for name, text in flags.items() if name != CONFIG_FILE}
    return build_config(keys, environ, read_config_file(Path(path)) if path else None, check_url)


def read_config_file(path: Path) -> ConfigFile:
    """The bytes of `path`, as many as `build_config` needs. Raises `ConfigError` when it cannot be read."""
    try:
        with path.open("rb") as file:
            return ConfigFile(str(path), file.read(MAX_FILE_BYTES + 1))
    except (OSError, ValueError) as error:
        raise ConfigError([f"{path}: cannot be read: {_cause(error)}"]) from None


def read_database_url(config: DatabaseConfig) -> str:
    """The connection URL now: `url`, or the content of `url_file`, read anew at each call, without its last newline.

    Raises `DatabaseUnavailable` with the reason `configuration` when the file is missing, unreadable or empty: like a
    database that is away this may pass (a mount that comes late, a secret being rotated), so the service retries.
    """
    if not config.url_file:
        return config.url.reveal()
    path = Path(config.url_file)
    try:
        if path.exists() and not path.is_file():
            raise _unavailable(path, "is not a file")
        with path.open("rb") as file:
            content = file.read(MAX_URL_BYTES + 1)
        url = content.decode().strip()
    except UnicodeDecodeError:
        raise _unavailable(path, "is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise _unavailable(path, f"cannot be read: {_cause(error)}") from None
    if not url or len(content) > MAX_URL_BYTES:
        raise _unavailable(path, "is empty" if not url else "is too large to be a URL")
    return url


def build_config(
    flags: Mapping[str, str], environ: Mapping[str, str], file: ConfigFile | None, check_url: CheckUrl
) -> LoadedConfig:
    """The configuration from flags (by path, `metrics.max_tags`), environment and file. Pure.

    `check_url` raises `ConfigError` for a connection URL that cannot be used. Raises `ConfigError` with
    every problem of every source, those of values that another source overrides included.
    """
    parsed = parse_file(file or ConfigFile("", b""))
    layers = _layers(flags, environ, parsed.texts, file.name if file else "")
    refusals = [_refuse(config_keys()[path]) for path in flags if config_keys()[path].secret]
    values, value_problems = _read_values(layers)
    problems = [*parsed.problems, *refusals, *value_problems]
    given_urls = [(layer, path) for layer in layers for path in (URL_FILE, URL) if layer.texts.get(path)]
    sources = [layer.source(config_keys()[path]) for layer, path in given_urls]
    if given_urls:
        values.pop(URL if given_urls[0][1] == URL_FILE else URL_FILE, None)
        problems += _url_problems(values.get(URL), sources[0], check_url)
    elif not any(problem.startswith(URL) for problem in problems):
        problems.append(f"{URL}: no database is named; set DATABASE_URL, DATABASE_URL_FILE or {URL} in the file")
    if problems:
        raise ConfigError(problems)
    warnings = _unknown_variables(environ)
    if sources[1:]:
        warnings = [f"{URL}: {sources[0]} is used; ignored: {', '.join(sources[1:])}", *warnings]
    return LoadedConfig(build_tree(values), warnings)


def _layers(
    flags: Mapping[str, str], environ: Mapping[str, str], texts: Mapping[str, str | None], file_name: str
) -> Sequence[_Layer]:
    """The sources, strongest first. An empty variable counts as not set: Compose files and charts write such."""
    ours = {path: environ[key.variable] for path, key in config_keys().items() if environ.get(key.variable)}
    windmill = {path: environ[name] for path, name in WINDMILL_VARIABLES.items() if environ.get(name)}
    return (
        _Layer(flags, lambda key: key.flag),
        _Layer(ours, lambda key: key.variable),
        _Layer(windmill, lambda key: WINDMILL_VARIABLES[key.path]),
        _Layer(texts, lambda key: f"{key.path} in {file_name}", is_file=True),
    )


def _read_values(layers: Sequence[_Layer]) -> tuple[dict[str, object], Sequence[str]]:
    values: dict[str, object] = {}
    problems = []
    for layer in reversed(layers):
        for path, text in layer.texts.items():
            key = config_keys()[path]
            try:
                values[path] = key.read(text)
            except ValueError as error:
                source = "" if layer.is_file else f" ({layer.source(key)})"
                problems.append(f"{path}: {error}{source}")
    return values, problems


def _refuse(key: Key) -> str:
    return (
        f"{key.path}: refused as {key.flag}, since every process list shows it; use {WINDMILL_VARIABLES[URL]}, "
        f"{WINDMILL_VARIABLES[URL_FILE]} or {config_keys()[URL_FILE].flag}"
    )


def _url_problems(url: object, source: str, check_url: CheckUrl) -> Sequence[str]:
    if isinstance(url, Secret):
        try:
            check_url(url.reveal(), source)
        except ConfigError as error:
            return error.problems
    return ()


def _unknown_variables(environ: Mapping[str, str]) -> Sequence[str]:
    known = [CONFIG_FILE_VARIABLE, *(key.variable for key in config_keys().values())]
    names = (name for name in sorted(environ) if name.startswith(VARIABLE_PREFIX) and name not in known)
    return [
        f"{name if name.isprintable() else show(name)}: unknown variable, ignored{suggest(name, known)}"
        for name in names
        if not SERVICE_VARIABLE.fullmatch(name)
    ]


def _unavailable(path: Path, what: str) -> DatabaseUnavailable:
    return DatabaseUnavailable(f"{URL_FILE} {path} {what}", reason="configuration")


def _cause(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "not a path"
