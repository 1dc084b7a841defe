"""`config.example.yaml` is complete, right and explained."""

from __future__ import annotations

import re

from exporter.config import Config, DatabaseConfig, Secret
from exporter.config_file import ConfigFile, parse_file
from exporter.config_keys import config_keys
from exporter.config_loading import build_config
from tests.configurations import accept
from tests.sources import PROJECT

EXAMPLE = PROJECT / "config.example.yaml"


def test_the_example_parses_and_equals_the_defaults() -> None:
    file = ConfigFile("config.example.yaml", EXAMPLE.read_bytes())
    loaded = build_config({}, {"DATABASE_URL": "postgres://db"}, file, accept)
    assert loaded.config == Config(database=DatabaseConfig(url=Secret("postgres://db")))
    assert loaded.warnings == []


def test_the_example_shows_every_key_in_the_order_of_the_tree() -> None:
    texts = parse_file(ConfigFile("config.example.yaml", EXAMPLE.read_bytes())).texts
    assert list(texts) == list(config_keys())


def test_each_key_of_the_example_stands_under_its_description_and_its_range() -> None:
    lines = EXAMPLE.read_text().splitlines()
    for key in config_keys().values():
        start = next(n for n, line in enumerate(lines) if line.strip() == f"# {key.description}")
        comment = [line.strip() for line in lines[start:] if line.strip()]
        end = next(n for n, line in enumerate(comment) if not line.startswith("#"))
        assert comment[end].startswith(key.path.rpartition(".")[2] + ":"), key.path
        assert ("# Needs a restart." in comment[:end]) is not key.live, key.path
        bounds = re.search(r"from (\S+) to (\S+?),?$", key.expected.removesuffix(" or null"))
        if bounds:
            assert f"# From {bounds[1]} to {bounds[2]}." in comment[:end], key.path
