"""`windmill-exporter demo`: one command that shows the exporter at work on a cluster that a noisy tenant floods.

With `--compare` the same seeded load is played three times and the rules are printed side by side.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from math import inf
from typing import Any

from exporter.demo.load import NOISY, UNSERVED_WORKSPACE, Load
from exporter.demo.measures import measure_waits, share_of_worker_time
from exporter.demo.postgres import EmbeddedPostgres
from exporter.demo.report import Outcome, TenantRow, render_comparison, render_introduction, render_tenants, shares
from exporter.demo.session import Rule, Session, session
from exporter.errors import ConfigError
from exporter.fairness.values import FairnessSettings

COMPARED_QUIET_TENANTS = 10
COMPARED_SECONDS = 60.0
# The first decisions rest on a cluster that has only just filled.
SETTLED_AFTER_SECONDS = 20.0
PRINT_EVERY_SECONDS = 2.0
LIVE_WAIT_SECONDS = 30.0
MAX_LAG_SECONDS = 1.0
MAX_SECONDS = 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the demo."""
    add = parser.add_argument
    add(
        "--seconds",
        type=_number(float, 1, MAX_SECONDS),
        help="how long to run (default: until Ctrl-C); with --compare for each of the three runs (default: 60)",
    )
    add("--seed", type=int, default=1, help="seed of the load and of the draws (default: 1)")
    add("--workers", type=_number(int, 1, 500), default=50, help="simulated workers (default: 50)")
    add("--fairness", choices=("on", "off"), default="on", help="Windmill's setting workspace_fairness_enabled")
    add("--compare", action="store_true", help="play the same load with fairness off, a constant p, the weighted p_c")
    add(
        "--quiet-load",
        type=_number(float, 1, 200),
        default=30.0,
        metavar="PERCENT",
        help="percent of all workers that the quiet tenants ask for together (default: 30)",
    )
    add("--port", type=_number(int, 0, 65_535), default=0, help="port of /metrics on 127.0.0.1 (default: a free one)")


def main(arguments: argparse.Namespace) -> int:
    """Run the demo; the exit code. Raises `ConfigError` for impossible options, `DemoError` when it cannot run here."""
    if arguments.compare:
        seconds = COMPARED_SECONDS if arguments.seconds is None else arguments.seconds
        if seconds <= SETTLED_AFTER_SECONDS:
            raise ConfigError([f"--seconds: --compare measures from second {SETTLED_AFTER_SECONDS:g} on, use more"])
    _say("starting PostgreSQL ...")
    with contextlib.suppress(KeyboardInterrupt), EmbeddedPostgres() as server:
        job = _compare(server, arguments, seconds) if arguments.compare else _live(server, arguments)
        asyncio.run(_until_signalled(job))
    return 0


async def _until_signalled(job: Coroutine[Any, Any, None]) -> None:
    """Ctrl-C and SIGTERM end the job in good order."""
    task = asyncio.ensure_future(job)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _live(server: EmbeddedPostgres, arguments: argparse.Namespace) -> None:
    load = Load(workers=arguments.workers, quiet_percent=arguments.quiet_load)
    rule = Rule.WEIGHTED if arguments.fairness == "on" else Rule.OFF
    async with session(server, "demo", rule, load, arguments.seed, arguments.port) as running:
        for url in running.service.urls:
            _say(f"status page: {url.rstrip('/')}/\nmetrics: {url.rstrip('/')}/metrics")
        _say(f"database: {server.url(database='demo')}\nCtrl-C ends it and leaves nothing behind.\n")
        _say(render_introduction(load, FairnessSettings().max_percent))
        drawn = ""
        while (left := _left(running, arguments.seconds)) > 0:
            await asyncio.sleep(min(left, PRINT_EVERY_SECONDS))
            table = _table(running, load)
            _say(_over(drawn) + table)
            drawn = table


async def _compare(server: EmbeddedPostgres, arguments: argparse.Namespace, seconds: float) -> None:
    load = Load(
        workers=arguments.workers,
        quiet_tenants=COMPARED_QUIET_TENANTS,
        quiet_percent=arguments.quiet_load,
        backlog_seconds=seconds,
    )
    outcomes = []
    for number, rule in enumerate(Rule, start=1):
        _say(f"{rule.value}: {seconds:g} s (run {number} of {len(Rule)})")
        async with session(server, f"demo_{rule.name.lower()}", rule, load, arguments.seed) as running:
            await asyncio.sleep(_left(running, seconds))
            outcomes.append(_outcome(rule, running, load))
    _say("\n" + render_comparison(load, arguments.seed, SETTLED_AFTER_SECONDS, seconds, outcomes))


def _left(running: Session, seconds: float | None) -> float:
    """Seconds to go; no `seconds` is for ever."""
    return inf if seconds is None else seconds - running.cluster.now


def _outcome(rule: Rule, running: Session, load: Load) -> Outcome:
    cluster = running.cluster
    until = cluster.now
    if cluster.max_lag_seconds > MAX_LAG_SECONDS:
        _say(f"warning: jobs arrived up to {cluster.max_lag_seconds:.1f} s late; use fewer --workers on this machine")
    runs = cluster.runs_since(SETTLED_AFTER_SECONDS)
    return Outcome(
        rule.value,
        share_of_worker_time(runs, NOISY, SETTLED_AFTER_SECONDS, until),
        measure_waits(runs, cluster.waiting, load.quiet_workspaces, SETTLED_AFTER_SECONDS, until),
        cluster.completed_jobs,
    )


def _table(running: Session, load: Load) -> str:
    """The present state as the service sees it, with the waits that the workers saw in the last 30 s."""
    snapshot = running.service.board.current.fairness
    cluster = running.cluster
    now, waiting = cluster.now, cluster.waiting
    since = now - LIVE_WAIT_SECONDS
    runs = cluster.runs_since(since)
    waiting_jobs = Counter(job.workspace for job in waiting)
    share_of = shares(snapshot)
    rows = [
        TenantRow(
            workspace=workspace,
            share=share_of.get(workspace),
            capped=snapshot is not None and workspace in snapshot.in_force.overloaded,
            waiting_jobs=waiting_jobs[workspace],
            waits=measure_waits(runs, waiting, {workspace}, since, now),
        )
        for workspace in (NOISY, *load.quiet_workspaces, UNSERVED_WORKSPACE)
    ]
    return render_tenants(now, snapshot, rows)


def _over(drawn: str) -> str:
    """On a terminal: the codes that put the cursor back to the first line of `drawn` and clear from there."""
    return f"\x1b[{drawn.count(chr(10)) + 1}F\x1b[J" if drawn and sys.stdout.isatty() else ""


def _say(text: str) -> None:
    print(text, flush=True)


def _number(kind: Callable[[str], float], low: float, high: float) -> Callable[[str], float]:
    """A parser of option values from `low` to `high`."""

    def parse(text: str) -> float:
        expected = f"expected a number from {low:g} to {high:g}, got {text!r}"
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(expected) from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(expected)
        return value

    return parse
