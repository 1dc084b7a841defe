"""The endpoints of Grafana's JSON datasource, under `/grafana`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import msgspec
from aiohttp import web

from exporter.errors import DatabaseUnavailable
from exporter.queue.history import Drawn
from exporter.queue.window import resolve
from exporter.snapshot import Snapshot
from exporter.web.answers import error_answer, json_answer
from exporter.web.grafana_answer import Entry, SeriesEntry, grid_entries, series_entries
from exporter.web.grafana_metrics import METRICS, Form
from exporter.web.grafana_request import (
    Query,
    Target,
    parse_payload_options,
    parse_query,
    parse_tag_key,
    parse_variable,
)
from exporter.web.grafana_tables import events_table, queue_table, shares_table
from exporter.web.grafana_tags import FILTERED_KEY, admitted
from exporter.web.keys import BOARD

ENCODER: Final = msgspec.json.Encoder()
TAGS_PAYLOAD: Final = {
    "name": "tags",
    "label": "Tags",
    "type": "multi-select",
    "reloadMetric": False,
    "placeholder": "all",
}


async def status(request: web.Request) -> web.Response:
    """ "Save & test": always 200; what is wrong stands in the body."""
    snapshot = request.app[BOARD].current
    problems = [f"{each.name}: {each.problem}" for each in snapshot.collectors if each.problem]
    if not problems:
        return json_answer({"status": "ok"})
    return json_answer({"status": "trouble", "message": "; ".join(problems)})


async def metrics(request: web.Request) -> web.Response:
    """The metrics to choose from; what was chosen so far changes nothing."""
    await read_json(request)
    return json_answer(
        [{"value": metric.name, "label": metric.label, "payloads": [TAGS_PAYLOAD]} for metric in METRICS.values()]
    )


async def payload_options(request: web.Request) -> web.Response:
    """The values to choose from for a field of the payload: tags."""
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
    """The values of a key of ad hoc filters."""
    key = parse_tag_key(await read_json(request))
    return json_answer([{"text": tag} for tag in (await _tags(request) if key == FILTERED_KEY else ())])
