"""Liveness and readiness, for Kubernetes. Neither asks the database anything."""

from __future__ import annotations

from aiohttp import web

from exporter.snapshot import Snapshot
from exporter.web.answers import error_answer, json_answer
from exporter.web.keys import NOT_READY

READING_COLLECTORS = frozenset({"fairness", "queue"})


async def healthy(_request: web.Request) -> web.Response:
    """The process and its event loop turn, or this would not be answered."""
    return json_answer({"status": "ok"})


async def ready(request: web.Request) -> web.Response:
    """200 while requests should be sent here, else 503 with the reason."""
    reason = request.app[NOT_READY]()
    if reason is None:
        return json_answer({"status": "ready"})
    return error_answer(503, "not_ready", reason)


def not_ready_reason(snapshot: Snapshot, *, requires_database: bool, stopping: bool) -> str | None:
    """Why this replica is not ready, in one sentence; None when it is.

    Only where the database is required does it count: a sidecar must not make its pod unready.
    """
    if stopping:
        return "The exporter is shutting down."
    readings = [status for status in snapshot.collectors if status.name in READING_COLLECTORS]
    if not requires_database or not readings:
        return None
    if not snapshot.database_up:
        return "The database cannot be reached."
    if all(status.last_success_epoch is None for status in readings):
        return "Nothing was read from the database yet."
    return None
