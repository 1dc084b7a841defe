"""Flag over environment over file over default for every key; the database URL; all problems at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from exporter.config import Config, DatabaseConfig, Secret
from exporter.config_file import ConfigFile
from exporter.config_keys import Key, config_keys
from exporter.config_loading import (
    MAX_URL_BYTES,
    SERVICE_VARIABLE,
    LoadedConfig,
    build_config,
    load_config,
    read_database_url,
)
from exporter.errors import ConfigError, DatabaseUnavailable
from tests.configurations import accept

URL = "postgres://windmill:hunter2@db/windmill"
DATABASE = {"DATABASE_URL": URL}
ORDINARY = [key for key in config_keys().values() if not key.path.startswith("database.url")]


def build(
    flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None, text: str = ""
) -> LoadedConfig:
    file = ConfigFile("c.yaml", text.encode()) if text else None
    return build_config(flags or {}, DATABASE if environ is None else environ, file, accept)


def problems_of(
    flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None, text: str = ""
) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        build(flags, environ, text)
    return list(caught.value.problems)


def three_values(key: Key) -> tuple[str, str, str]:
    """Different valid texts for one key."""
    match key.form:
        case inspect.BoolType():
            return "true", "false", "true"
        case inspect.IntType() | inspect.FloatType():
            return "3", "4", "5"
        case inspect.EnumType(cls=members):
            first, second, third = (member.value for member in members)
            return first, second, third
        case inspect.LiteralType(values=words):
            return str(words[0]), str(words[1]), str(words[0])
    if key.path == "web.listen_address":
        return ":1", "127.0.0.1:2", "[::1]:3"
    return "/a", "/b", "/c"


def value_at(config: Config, path: str) -> object:
    value: object = config
    for name in path.split("."):
        value = getattr(value, name)
    return value


def nested(path: str, text: str) -> str:
    *sections, name = path.split(".")
    return "".join(f"{'  ' * depth}{section}:\n" for depth, section in enumerate(sections)) + (
        f"{'  ' * len(sections)}{name}: '{text}'\n"
    )


@pytest.mark.parametrize("key", ORDINARY, ids=lambda key: key.path)
def test_a_flag_beats_the_environment_beats_the_file_beats_the_default(key: Key) -> None:
    in_flag, in_environment, in_file = three_values(key)
    flags = {key.path: in_flag}
    environ = {**DATABASE, key.variable: in_environment}
    text = nested(key.path, in_file)
    assert value_at(build().config, key.path) == value_at(Config(), key.path) == key.default
    assert value_at(build(text=text).config, key.path) == key.read(in_file)
    assert value_at(build(environ=environ, text=text).config, key.path) == key.read(in_environment)
    assert value_at(build(flags, environ, text).config, key.path) == key.read(in_flag)


def test_a_value_leaves_every_other_key_at_its_default() -> None:
    loaded = build(text="metrics: {max_tags: 7}")
    changed = [path for path, key in config_keys().items() if value_at(loaded.config, path) != key.default]
    assert changed == ["database.url", "metrics.max_tags"]
    assert loaded.warnings == []


def test_flags_and_variables_follow_from_the_key() -> None:
    key = config_keys()["fairness.settings.max_percent"]
    assert key.flag == "--fairness.settings.max-percent"
    assert key.variable == "WINDMILL_EXPORTER_FAIRNESS_SETTINGS_MAX_PERCENT"


def test_no_two_keys_share_a_variable_and_none_is_one_that_kubernetes_sets() -> None:
    variables = [key.variable for key in config_keys().values()]
    assert len(set(variables)) == len(variables)
    assert not [name for name in variables if SERVICE_VARIABLE.fullmatch(name)]


def test_every_key_is_described() -> None:
    assert [key.path for key in config_keys().values() if not key.description] == []


def test_every_problem_of_every_source_is_reported_at_once_with_its_source() -> None:
    problems = problems_of(
        {"metrics.max_tags": "many", "log.level": ""},
        {"WINDMILL_EXPORTER_METRICS_MAX_TAGS": "0", "WINDMILL_EXPORTER_FAIRNESS_MODE": "on"},
        "metrics: {max_tags: few}\nquue: 1",
    )
    assert problems == [
        "quue: unknown key (line 2); did you mean queue?",
        'metrics.max_tags: expected an integer from 1 to 10000, got "few"',
        'fairness.mode: expected one of off, shadow, enforce, got "on" (WINDMILL_EXPORTER_FAIRNESS_MODE)',
        'metrics.max_tags: expected an integer from 1 to 10000, got "0" (WINDMILL_EXPORTER_METRICS_MAX_TAGS)',
        'metrics.max_tags: expected an integer from 1 to 10000, got "many" (--metrics.max-tags)',
        'log.level: expected one of debug, error, info, warning, got "" (--log.level)',
        "database.url: no database is named; set DATABASE_URL, DATABASE_URL_FILE or database.url in the file",
    ]


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("metrics.cluster", "Off", False),
        ("metrics.cluster", "yes", True),
        ("fairness.settings.enabled", "null", None),
        ("fairness.settings.min_total_jobs", "4294967295", 4294967295),
        ("queue.interval_seconds", "2.5e1", 25.0),
        ("queue.interval_seconds", "30", 30.0),
        ("web.listen_address", "[fe80::1%eth0]:65535", "[fe80::1%eth0]:65535"),
        ("web.route_prefix", "/a/b-c.d_e~f/", "/a/b-c.d_e~f/"),
        ("database.schema", 'Qu"ote; --é', 'Qu"ote; --é'),
    ],
)
def test_texts_become_values(path: str, text: str, value: object) -> None:
    read = config_keys()[path].read(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("metrics.max_tags", "9" * 5000),
        ("metrics.max_tags", "\u0661\u0660"),
        ("metrics.max_tags", "1e3"),
        ("metrics.max_tags", " 5"),
        ("queue.interval_seconds", "inf"),
        ("queue.interval_seconds", "0x1p3"),
        ("fairness.settings.min_total_jobs", "4294967296"),
        ("fairness.settings.enabled", ""),
        ("database.schema", "a\x00b"),
        ("database.schema", "a\u202eb"),
        ("web.listen_address", "::1:9480"),
        ("web.listen_address", "a b:1"),
        ("web.listen_address", ":9480\n"),
        ("web.route_prefix", "/a?b"),
        ("web.route_prefix", "///"),
    ],
)
def test_other_texts_are_refused_on_one_short_line(path: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected .*, got ") as caught:
        config_keys()[path].read(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@given(st.sampled_from(sorted(config_keys())), st.text(max_size=80))
def test_no_text_raises_anything_but_a_value_error(path: str, text: str) -> None:
    with contextlib.suppress(ValueError):
        config_keys()[path].read(text)


def test_an_empty_variable_counts_as_not_set() -> None:
    environ = {**DATABASE, "WINDMILL_EXPORTER_METRICS_MAX_TAGS": "", "DATABASE_URL_FILE": ""}
    assert build(environ=environ).config.metrics.max_tags == 500


def test_an_unknown_variable_is_a_warning_with_a_suggestion() -> None:
    environ = {**DATABASE, "WINDMILL_EXPORTER_QUEUE_MODUS": "5", "WINDMILL_EXPORTER_\n": "x"}
    warnings = build(environ=environ).warnings
    assert warnings == [
        r'"WINDMILL_EXPORTER_\n": unknown variable, ignored; did you mean WINDMILL_EXPORTER_LOG_LEVEL?',
        "WINDMILL_EXPORTER_QUEUE_MODUS: unknown variable, ignored; did you mean WINDMILL_EXPORTER_QUEUE_MODE?",
    ]


def test_the_variables_that_kubernetes_makes_of_a_service_are_no_warning() -> None:
    suffixes = ["SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_9480_TCP", "PORT_9480_TCP_ADDR"]
    environ = {f"WINDMILL_EXPORTER_{suffix}": "x" for suffix in suffixes}
    assert build(environ={**DATABASE, **environ}).warnings == []


FILE_URLS = "database: {url: postgres://file, url_file: /file}"
URL_SOURCES = [
    ("WINDMILL_EXPORTER_DATABASE_URL_FILE", "/ours"),
    ("WINDMILL_EXPORTER_DATABASE_URL", "postgres://ours"),
    ("DATABASE_URL_FILE", "/windmill"),
    ("DATABASE_URL", "postgres://windmill"),
]


@pytest.mark.parametrize("position", range(len(URL_SOURCES)))
def test_the_first_source_of_the_database_wins_with_one_warning_that_names_the_others(position: int) -> None:
    environ = dict(URL_SOURCES[position:])
    name, text = URL_SOURCES[position]
    loaded = build(environ=environ, text=FILE_URLS)
    found = loaded.config.database
    assert (found.url_file, found.url.reveal()) == ((text, "") if text.startswith("/") else ("", text))
    others = [other for other, _ in URL_SOURCES[position + 1 :]]
    ignored = ", ".join([*others, "database.url_file in c.yaml", "database.url in c.yaml"])
    assert loaded.warnings == [f"database.url: {name} is used; ignored: {ignored}"]


def test_the_file_alone_may_name_the_database() -> None:
    loaded = build(environ={}, text=FILE_URLS)
    assert loaded.config.database == DatabaseConfig(url_file="/file")
    assert loaded.warnings == ["database.url: database.url_file in c.yaml is used; ignored: database.url in c.yaml"]
    assert build(environ={}, text="database: {url: postgres://file}").config.database.url == Secret("postgres://file")


def test_a_flag_for_the_url_file_beats_every_variable() -> None:
    assert build({"database.url_file": "/flag"}, dict(URL_SOURCES)).config.database.url_file == "/flag"


def test_a_url_by_flag_is_refused_without_showing_it() -> None:
    [problem] = problems_of({"database.url": URL})
    assert problem == (
        "database.url: refused as --database.url, since every process list shows it; "
        "use DATABASE_URL, DATABASE_URL_FILE or --database.url-file"
    )


def test_a_missing_database_is_a_problem() -> None:
    assert problems_of(environ={}) == [
        "database.url: no database is named; set DATABASE_URL, DATABASE_URL_FILE or database.url in the file"
    ]


def test_the_url_is_checked_together_with_everything_else() -> None:
    seen = []

    def refuse(url: str, where: str) -> None:
        seen.append((url, where))
        raise ConfigError([f"{where}: is not a database URL"])

    with pytest.raises(ConfigError) as caught:
        build_config({"log.level": "x"}, DATABASE, None, refuse)
    assert seen == [(URL, "DATABASE_URL")]
    assert len(caught.value.problems) == 2
    assert caught.value.problems[1] == "DATABASE_URL: is not a database URL"


def test_a_line_end_behind_the_url_is_ignored() -> None:
    assert build(environ={"DATABASE_URL": URL + "\r\n"}).config.database.url == Secret(URL)


def test_the_url_shows_nowhere() -> None:
    config = build().config
    for text in (repr(config), str(config), f"{config.database.url}", f"{config.database.url!r}", str([config])):
        assert "hunter2" not in text
    [problem] = problems_of(environ={"DATABASE_URL": "postgres://u:hunter2\n@h/d"})
    assert problem == "database.url: expected a connection URL, got another text (DATABASE_URL)"


def test_a_secret_is_equal_to_the_same_text_only() -> None:
    assert Secret("a") == Secret("a")
    assert hash(Secret("a")) == hash(Secret("a"))
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert not Secret()


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "no.yaml", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(ConfigError, match=f"^{path}: cannot be read: {why}$"):
            load_config({"config.file": str(path)}, DATABASE, accept)


def test_the_file_is_named_by_flag_or_variable(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("metrics: {max_tags: 1}")
    (tmp_path / "b.yaml").write_text("metrics: {max_tags: 2}")
    environ = {**DATABASE, "WINDMILL_EXPORTER_CONFIG_FILE": str(tmp_path / "a.yaml")}
    by_variable = load_config({}, environ, accept)
    assert by_variable.config.metrics.max_tags == 1
    assert by_variable.warnings == []
    by_flag = load_config({"config.file": str(tmp_path / "b.yaml")}, environ, accept)
    assert by_flag.config.metrics.max_tags == 2


def test_an_endless_file_is_not_read_to_its_end() -> None:
    with pytest.raises(ConfigError, match="/dev/zero: larger than 256 KiB"):
        load_config({"config.file": "/dev/zero"}, DATABASE, accept)


def test_a_url_file_is_read_anew_each_time_without_its_last_newline(tmp_path: Path) -> None:
    """It may come late, and change when a secret is rotated (field case F13)."""
    path = tmp_path / "url"
    config = DatabaseConfig(url_file=str(path))
    with pytest.raises(DatabaseUnavailable, match=f"^database.url_file {path} cannot be read: No such file") as caught:
        read_database_url(config)
    assert caught.value.reason == "configuration"
    path.write_text(URL + "\n")
    assert read_database_url(config) == URL
    path.write_text("postgres://other\r\n")
    assert read_database_url(config) == "postgres://other"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\xffhunter2", "is not UTF-8 text"),
        (b"x" * (MAX_URL_BYTES + 1), "large"),
    ],
)
def test_an_unusable_url_file_is_named_without_its_content(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "url"
    path.write_bytes(content)
    with pytest.raises(DatabaseUnavailable, match=f"{path} .*{why}") as caught:
        read_database_url(DatabaseConfig(url_file=str(path)))
    assert "hunter2" not in str(caught.value)


def test_an_unreadable_url_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "url"
    path.write_text(URL)
    path.chmod(0)
    own_id = os.geteuid()
    try:
        if own_id == 0:
            os.seteuid(65534)  # root reads everything
        with pytest.raises(DatabaseUnavailable, match=f"^database.url_file {path} cannot be read: Permission denied$"):
            read_database_url(DatabaseConfig(url_file=str(path)))
    finally:
        os.seteuid(own_id)


def test_a_url_file_that_is_no_file_does_not_block(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero")):
        with pytest.raises(DatabaseUnavailable, match="is not a file"):
            read_database_url(DatabaseConfig(url_file=str(path)))


def test_without_a_file_the_url_is_the_configured_one() -> None:
    assert read_database_url(DatabaseConfig(url=Secret(URL))) == URL
