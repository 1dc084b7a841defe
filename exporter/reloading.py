"""Pure: what a configuration that was read anew changes while the service runs, and what must wait for a restart."""

from __future__ import annotations

from dataclasses import dataclass

from exporter.config import Config
from exporter.config_keys import build_tree, config_keys, tree_values


@dataclass(frozen=True, slots=True)
class ReloadPlan:
    """`config` is what to run with from now on: live keys as read anew, the others as they were. The rest are paths."""

    config: Config
    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]

    @property
    def changes_collectors(self) -> bool:
        """Whether the collectors must be made anew."""
        return any(path.startswith(("fairness.", "queue.")) for path in self.applied)


def plan_reload(running: Config, read: Config) -> ReloadPlan:
    """How to get from `running` to `read`."""
    old, new = tree_values(running), tree_values(read)
    changed = [path for path in config_keys() if old[path] != new[path]]
    live = {path: new[path] for path in changed if config_keys()[path].live}
    return ReloadPlan(
        config=build_tree({**old, **live}),
        applied=tuple(live),
        needs_restart=tuple(path for path in changed if path not in live),
    )
