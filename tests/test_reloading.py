"""What a reload may change at once, and what must wait for a restart."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.config import Config, DatabaseConfig, FairnessConfig, QueueConfig, Secret, WebConfig
from exporter.config_keys import build_tree, config_keys, tree_values
from exporter.fairness.values import FairnessMode
from exporter.reloading import plan_reload

OTHER = {
    "database.url": Secret("postgres://other"),
    "fairness.mode": FairnessMode.OFF,
    "web.listen_address": ":1",
    "log.level": "debug",
    "log.format": "json",
}


def other(path: str) -> object:
    """A value that the key does not have by default."""
    key, default = config_keys()[path], tree_values(Config())[path]
    if path in OTHER:
        return OTHER[path]
    if isinstance(default, bool) or (default is None and isinstance(key.form, msgspec.inspect.BoolType)):
        return not default
    if isinstance(default, int | float):
        return type(default)(default + 1)
    if default is None:
        return 7
    return msgspec.convert("sample", key.annotation) if path == "queue.mode" else "other"


def test_nothing_changed_is_nothing_to_do() -> None:
    plan = plan_reload(Config(), Config())
    assert (plan.config, plan.applied, plan.needs_restart, plan.changes_collectors) == (Config(), (), (), False)


@pytest.mark.parametrize("path", config_keys())
def test_every_key_is_applied_or_named(path: str) -> None:
    read = build_tree({path: other(path)})
    assert read != Config()
    plan = plan_reload(Config(), read)
    if config_keys()[path].live:
        assert (plan.config, plan.applied, plan.needs_restart) == (read, (path,), ())
    else:
        assert (plan.config, plan.applied, plan.needs_restart) == (Config(), (), (path,))


@given(st.sets(st.sampled_from(list(config_keys()))))
def test_keys_do_not_meddle_with_each_other(paths: set[str]) -> None:
    plan = plan_reload(Config(), build_tree({path: other(path) for path in paths}))
    live = {path for path in paths if config_keys()[path].live}
    assert set(plan.applied) == live
    assert set(plan.needs_restart) == paths - live
    assert plan.config == build_tree({path: other(path) for path in live})


@pytest.mark.parametrize(
    ("read", "collectors"),
    [
        (Config(fairness=FairnessConfig(mode=FairnessMode.OFF)), True),
        (Config(queue=QueueConfig(interval_seconds=3)), True),
        (Config(web=WebConfig(public_metrics=True)), False),
        (Config(database=DatabaseConfig(pool_size=7)), False),
    ],
)
def test_only_keys_of_the_collectors_make_them_anew(read: Config, collectors: bool) -> None:
    assert plan_reload(Config(), read).changes_collectors is collectors


def test_what_waits_for_a_restart_is_named_until_it_happens() -> None:
    read = Config(database=DatabaseConfig(pool_size=7))
    once = plan_reload(Config(), read)
    assert plan_reload(once.config, read).needs_restart == ("database.pool_size",)


def test_the_tree_and_its_values_are_the_same() -> None:
    config = build_tree({path: other(path) for path in config_keys()})
    assert build_tree(tree_values(config)) == config
