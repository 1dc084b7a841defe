"""The endpoints of Grafana's JSON datasource, under `/grafana`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from exporter.snapshot import Snapshot
from exporter.web.answers import json_answer
from exporter.web.bodies import read_json
from exporter.web.grafana.metrics import METRICS
from exporter.web.grafana.query import read_entries
from exporter.web.grafana.request import parse_payload_options, parse_query, parse_tag_key, parse_variable
from exporter.web.grafana.tags import FILTERED_KEY
from exporter.web.keys import BOARD, KNOWN_TAGS
from exporter.web.streams import joined, stream_json

ENCODER: Final = msgspec.json.Encoder()
TAGS_PAYLOAD: Final = {
    "name": "tags",
    "label": "Tags",
    "type": "multi-select",
    "reloadMetric": False,
    "placeholder": "all",
}


async def status(request: web.Request) -> web.Response:
    """For "Save & test", which wants 200 whatever the database does: what is wrong stands in the body."""
    problem = trouble(request.app[BOARD].current)
    return json_answer({"status": "ok"} if problem is None else {"status": "trouble", "message": problem})


async def metrics(request: web.Request) -> web.Response:
    """The metrics to choose from; what was chosen so far changes nothing."""
    await read_json(request)
    return json_answer(
        [{"value": metric.name, "label": metric.label, "payloads": [TAGS_PAYLOAD]} for metric in METRICS.values()]
    )


async def payload_options(request: web.Request) -> web.Response:
    """The values to choose from for a field of a metric's payload."""
    asked = parse_payload_options(await read_json(request))
    known = asked.metric in METRICS and asked.name == TAGS_PAYLOAD["name"]
    return json_answer([{"value": tag, "label": tag} for tag in (await _tags(request) if known else ())])


async def variable(request: web.Request) -> web.Response:
    """The values of a dashboard variable."""
    asked = parse_variable(await read_json(request))
    names: Sequence[str] = ()
    if asked == "tags":
        names = await _tags(request)
    elif asked == "workspaces":
        names = workspaces(request.app[BOARD].current)
    elif asked == "metrics":
        names = tuple(METRICS)
    return json_answer([{"__text": name, "__value": name} for name in names])


async def tag_keys(request: web.Request) -> web.Response:
    """What ad hoc filters can look at."""
    await read_json(request)
    return json_answer([{"type": "string", "text": FILTERED_KEY}])


async def tag_values(request: web.Request) -> web.Response:
    """The values of one key of ad hoc filters."""
    key = parse_tag_key(await read_json(request))
    return json_answer([{"text": tag} for tag in (await _tags(request) if key == FILTERED_KEY else ())])


async def query(request: web.Request) -> web.StreamResponse:
    """The data of a panel, or annotations: always an array."""
    entries = await read_entries(request, parse_query(await read_json(request)))
    return await stream_json(request, joined(map(ENCODER.encode, entries)))


GRAFANA_GET_ROUTES: Final[Mapping[str, Handler]] = {"/grafana": status}
GRAFANA_POST_ROUTES: Final[Mapping[str, Handler]] = {
    "/grafana/metrics": metrics,
    "/grafana/search": metrics,
    "/grafana/metric-payload-options": payload_options,
    "/grafana/query": query,
    "/grafana/variable": variable,
    "/grafana/tag-keys": tag_keys,
    "/grafana/tag-values": tag_values,
}


def trouble(snapshot: Snapshot) -> str | None:
    """What keeps the collectors from reading, in one sentence each; None when nothing does."""
    problems = [f"{each.name}: {each.problem}" for each in snapshot.collectors if each.problem]
    return "; ".join(problems) or None


def workspaces(snapshot: Snapshot) -> tuple[str, ...]:
    """Every workspace of the last readings, in code point order."""
    names: set[str] = set()
    if snapshot.fairness is not None:
        names.update(snapshot.fairness.in_force.overloaded)
        if snapshot.fairness.reading is not None:
            names.update(usage.workspace for usage in snapshot.fairness.reading.usage)
    if snapshot.queue is not None:
        names.update(wait.workspace for wait in snapshot.queue.reading.workspaces)
    return tuple(sorted(names))


async def _tags(request: web.Request) -> Sequence[str]:
    return await request.app[KNOWN_TAGS].all()
