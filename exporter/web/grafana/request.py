"""Pure: what a request of Grafana's JSON datasource asks for, in the form of any generation of its plugins.

Every function takes decoded JSON of any shape and raises `BadRequest`, which names the field, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from exporter.errors import BadRequest
from exporter.queue.window import MAX_SLOTS, RequestedWindow
from exporter.web.grafana.fields import (
    read_epoch_ms,
    read_number,
    read_object,
    read_payload,
    read_text,
    refusal,
)
from exporter.web.grafana.metrics import METRICS, Metric
from exporter.web.grafana.tags import TagFilter, Tags, read_filters, read_tags

MIN_SLOTS: Final = 20
POINTS_PER_SLOT: Final = 5
DEFAULT_LIMIT: Final = 50
MAX_TARGETS: Final = 100
MAX_REF_ID_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class Target:
    """One query of a panel: a metric, the tags (None: all) and how many series at most (0: all)."""

    metric: Metric
    ref_id: str | None
    tags: Tags | None
    limit: int


@dataclass(frozen=True, slots=True)
class Query:
    """A whole request for data; every filter holds for every target."""

    window: RequestedWindow
    slots: int
    targets: tuple[Target, ...]
    filters: tuple[TagFilter, ...]


@dataclass(frozen=True, slots=True)
class PayloadOptions:
    """A request for the values to choose from for one field of a metric's payload."""

    metric: str
    name: str


def parse_query(body: object) -> Query:
    """The body of `/query`."""
    request = read_object(body, "body")
    if not isinstance(request.get("targets"), list):
        raise refusal("targets", "a list", request.get("targets"))
    bounds = read_object(request.get("range"), "range")
    return Query(
        window=RequestedWindow(
            read_epoch_ms(bounds.get("from"), "range.from"), read_epoch_ms(bounds.get("to"), "range.to")
        ),
        slots=_slots(request.get("maxDataPoints")),
        targets=_targets(request["targets"]),
        # Plugins before 0.6 call them adhocFilters.
        filters=read_filters(request.get("filters"), "filters")
        + read_filters(request.get("adhocFilters"), "adhocFilters"),
    )


def parse_variable(body: object) -> str:
    """The body of `/variable`: what a dashboard variable is to list; empty where it names nothing."""
    request = read_object(body, "body")
    asked = request.get("payload")
    payload = read_payload(asked)
    if not payload and isinstance(asked, str):
        return asked.strip()
    return read_text(payload.get("target", request.get("target")), "payload.target").strip()


def parse_payload_options(body: object) -> PayloadOptions:
    """The body of `/metric-payload-options`."""
    request = read_object(body, "body")
    return PayloadOptions(read_text(request.get("metric"), "metric"), read_text(request.get("name"), "name"))


def parse_tag_key(body: object) -> str:
    """The body of `/tag-values`: the key of an ad hoc filter."""
    return read_text(read_object(body, "body").get("key"), "key")


def _slots(max_data_points: object) -> int:
    points = read_number(max_data_points, "maxDataPoints")
    if points is None:
        return MAX_SLOTS
    most = MAX_SLOTS * POINTS_PER_SLOT
    return max(MIN_SLOTS, int(max(0, min(points, most))) // POINTS_PER_SLOT)


def _targets(elements: list[Any]) -> tuple[Target, ...]:
    if len(elements) > MAX_TARGETS:
        raise BadRequest(f"targets: expected at most {MAX_TARGETS}, got {len(elements)}", field="targets")
    targets = (_target(element, f"targets[{index}]") for index, element in enumerate(elements))
    return tuple(target for target in targets if target is not None)


def _target(element: object, place: str) -> Target | None:
    """One target, or None when it is hidden or not filled in yet."""
    described = read_object(element, place)
    name, _, listed = read_text(described.get("target"), f"{place}.target").partition(":")
    if described.get("hide") is True or not (name.strip() or listed.strip()):
        return None
    metric = METRICS.get(name.strip())
    if metric is None:
        raise refusal(f"{place}.target", ", ".join(METRICS), name)
    payload = read_payload(described.get("payload"), described.get("data"))
    key = "tags" if "tags" in payload else "tag"
    tags = read_tags(payload.get(key), f"{place}.payload.{key}")
    return Target(
        metric=metric,
        ref_id=_ref_id(described.get("refId"), f"{place}.refId"),
        tags=read_tags(listed, f"{place}.target") if tags is None else tags,
        limit=_limit(payload.get("limit"), f"{place}.payload.limit"),
    )


def _ref_id(value: object, field: str) -> str | None:
    """It returns with every series: a long one would multiply."""
    if value is None:
        return None
    text = read_text(value, field)
    if len(text) > MAX_REF_ID_CHARACTERS:
        raise refusal(field, f"at most {MAX_REF_ID_CHARACTERS} characters", text)
    return text


def _limit(value: object, field: str) -> int:
    number = read_number(value, field)
    if number is None:
        return DEFAULT_LIMIT
    if number < 0 or number != number // 1:
        raise refusal(field, "a whole number from 0 (all)", value)
    return int(min(number, 1_000_000))
