"""Requests as each generation of the plugins sends them. All of `PANELS` mean the same."""

from __future__ import annotations

import json
from typing import Any

FROM_MS = 1_574_407_403_836
TO_MS = 1_574_418_203_836
RANGE = {
    "from": "2019-11-22T07:23:23.836Z",
    "to": "2019-11-22T10:23:23.836Z",
    "raw": {"from": "now-3h", "to": "now"},
}
SCOPED_VARIABLES = {"__interval": {"text": "5s", "value": "5s"}, "__interval_ms": {"text": "5000", "value": 5000}}


def simple_json(target: str = "queue_delay:(deno|b\\.c)", **changes: Any) -> dict[str, Any]:
    """Simple JSON, the plugin that began it: no payload, filters as `adhocFilters`."""
    return {
        "panelId": "Q-1599986187842",
        "range": RANGE,
        "rangeRaw": {"from": "now-3h", "to": "now"},
        "interval": "5s",
        "intervalMs": 5000,
        "targets": [{"target": target, "refId": "A", "type": "timeserie"}],
        "adhocFilters": [{"key": "tag", "operator": "!=", "value": "other"}],
        "format": "json",
        "maxDataPoints": 550,
        **changes,
    }


def simpod_0_2(target: str = "queue_delay", data: object = '{"tags": ["deno", "b.c"]}') -> dict[str, Any]:
    """Its successor at first: additional data as `data`, JSON text or read already."""
    return {
        "requestId": "Q102",
        "timezone": "utc",
        "panelId": 2,
        "dashboardId": None,
        "range": RANGE,
        "interval": "5s",
        "intervalMs": 5000,
        "targets": [{"data": data, "target": target, "refId": "A", "hide": False, "type": "timeseries"}],
        "maxDataPoints": 550,
        "scopedVars": SCOPED_VARIABLES,
        "startTime": 1574418203842,
        "rangeRaw": {"from": "now-3h", "to": "now"},
        "adhocFilters": [{"key": "tag", "operator": "!=", "value": "other"}],
    }


def simpod_0_3(target: str = "queue_delay", payload: object = None) -> dict[str, Any]:
    """Payload as an object, which the plugin makes of the text in the editor."""
    payload = {"tags": ["deno", "b.c"]} if payload is None else payload
    request = simpod_0_2()
    request["targets"] = [{"refId": "A", "target": target, "payload": payload, "hide": False, "datasource": "JSON"}]
    return request


def simpod_0_6(target: str = "queue_delay", payload: object = None) -> dict[str, Any]:
    """The builder: filters as `filters`, every value of the payload a text or a list of texts."""
    payload = {"tags": ["deno", "b.c"], "limit": "50"} if payload is None else payload
    return {
        "app": "dashboard",
        "requestId": "SQR118",
        "timezone": "browser",
        "panelId": 3,
        "panelPluginId": "timeseries",
        "dashboardUID": "windmill-queue-history",
        "range": RANGE,
        "interval": "5s",
        "intervalMs": 5000,
        "targets": [
            {
                "datasource": {"type": "simpod-json-datasource", "uid": "json"},
                "editorMode": "builder",
                "payload": payload,
                "refId": "A",
                "target": target,
            }
        ],
        "maxDataPoints": 550,
        "scopedVars": {**SCOPED_VARIABLES, "__sceneObject": {"value": "__sceneObject"}},
        "startTime": 1574418203842,
        "rangeRaw": {"from": "now-3h", "to": "now"},
        "filters": [{"key": "tag", "operator": "!=", "value": "other"}],
        "scopes": [],
    }


def by_hand() -> dict[str, Any]:
    """What people send with curl or Infinity: nothing but what is needed, in epoch milliseconds."""
    return {
        "range": {"from": FROM_MS, "to": str(TO_MS)},
        "targets": [{"target": "queue_delay:deno,b.c", "refId": "A"}],
        "maxDataPoints": "550",
        "filters": [{"key": "tag", "operator": "!=", "value": "other"}],
    }


PANELS: dict[str, dict[str, Any]] = {
    "simple JSON": simple_json(),
    "simpod 0.2": simpod_0_2(),
    "simpod 0.2, data read": simpod_0_2(data={"tags": ["deno", "b.c"]}),
    "simpod 0.2, tags in the target": simpod_0_2("queue_delay:{deno,b.c}", data=None),
    "simpod 0.3": simpod_0_3(),
    "simpod 0.3, payload as text": simpod_0_3(payload=json.dumps({"tags": "deno,b.c"})),
    "simpod 0.3, empty payload": simpod_0_3("queue_delay:(deno|b\\.c)", payload=""),
    "simpod 0.6": simpod_0_6(),
    "simpod 0.6, a variable in a text": simpod_0_6(payload={"tags": "(deno|b\\.c)", "limit": ""}),
    "by hand": by_hand(),
}
