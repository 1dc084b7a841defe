"""The bodies of requests, and of answers that are written piece by piece, as types: for the description alone."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from exporter.web.grafana.metrics import METRICS
from exporter.web.windmill_api import StoredValue

Vertex: TypeAlias = tuple[int, float]
MetricName: TypeAlias = Literal[tuple(METRICS)]  # type: ignore[valid-type]  # the names are declared once, as values
Texts: TypeAlias = str | list[str] | None


class ErrorDetail(Struct):
    """`code` is for programs, `message` one sentence for people."""

    code: str
    message: str


class Error(Struct):
    """What every answer that is no success holds."""

    message: str
    error: ErrorDetail


class State(Struct):
    """One word; `version` and `message` only where the path has one to tell."""

    status: str
    version: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class TagSeries(Struct):
    """The lines of one tag as exact vertices: epoch milliseconds, value."""

    tag: str
    count: list[Vertex]
    delay: list[Vertex]


class SeriesWindow(Struct, rename={"from_ms": "from", "to_ms": "to"}):
    """The window that was drawn, in epoch milliseconds, and its tags in code point order."""

    from_ms: int
    to_ms: int
    tags: list[TagSeries]


class StoredRows(Struct):
    """The stored rows of one series, whose id is `queue_count_` or `queue_delay_` and the tag."""

    id: str
    values: list[StoredValue]


class FairnessEvent(Struct):
    """One transition into or out of the capped set."""

    timestamp: str
    operation: Literal["workspace_fairness.capped", "workspace_fairness.uncapped"]
    workspace_id: str
    parameters: dict[str, Any] | None


class Payload(Struct):
    """A field of a metric that Grafana's query editor offers."""

    name: str
    label: str
    type: str


class OfferedMetric(Struct):
    """A metric to choose from."""

    value: str
    label: str
    payloads: list[Payload]


class Option(Struct):
    """A value to choose from."""

    value: str
    label: str


class VariableValue(Struct, rename={"text": "__text", "value": "__value"}):
    """A value of a dashboard variable."""

    text: str
    value: str


class FilterKey(Struct):
    """What an ad hoc filter can look at."""

    type: str
    text: str


class FilterValue(Struct):
    """A value of an ad hoc filter."""

    text: str


class TargetPayload(Struct):
    """What narrows a target down: tags (none: all), and how many series at most (0: all)."""

    tags: Texts | UnsetType = UNSET
    tag: Texts | UnsetType = UNSET
    limit: int | str | UnsetType | None = UNSET


class RequestedTarget(Struct, rename="camel"):
    """One query of a panel; the metric may be followed by a colon and tags. `data` is the payload of old plugins."""

    target: MetricName | str | UnsetType | None = UNSET
    ref_id: Annotated[str, Meta(max_length=100)] | UnsetType | None = UNSET
    payload: TargetPayload | str | UnsetType | None = UNSET
    data: TargetPayload | str | UnsetType | None = UNSET
    hide: bool | UnsetType = UNSET


class RequestedRange(Struct, rename={"from_": "from"}):
    """Epoch milliseconds or ISO 8601 instants; the last 24 h where they are missing."""

    from_: int | str | UnsetType | None = UNSET
    to: int | str | UnsetType | None = UNSET


class RequestedFilter(Struct):
    """One ad hoc filter; those on other keys than `tag` are ignored."""

    key: Literal["tag"] | str  # noqa: PYI051 -- the one key that counts is to be seen in the description
    operator: Literal["=", "!=", "=~", "!~", "=|", "!=|"]
    value: str | UnsetType = UNSET
    values: list[str] | UnsetType = UNSET


class DataRequest(Struct, rename="camel"):
    """What Grafana sends for a panel; what else it sends is ignored."""

    targets: Annotated[list[RequestedTarget], Meta(max_length=100)]
    range: RequestedRange | UnsetType | None = UNSET
    max_data_points: int | str | UnsetType | None = UNSET
    filters: Annotated[list[RequestedFilter], Meta(max_length=50)] | UnsetType | None = UNSET
    adhoc_filters: Annotated[list[RequestedFilter], Meta(max_length=50)] | UnsetType | None = UNSET


class OptionsRequest(Struct):
    """Which field of which metric."""

    metric: MetricName | str
    name: str


class RequestedVariable(Struct):
    """What a variable lists."""

    target: Literal["tags", "workspaces", "metrics"] | str  # noqa: PYI051 -- what is understood is to be seen


class VariableRequest(Struct):
    """`payload` may be its own JSON text, or the bare word."""

    payload: RequestedVariable | str | UnsetType | None = UNSET
    target: str | UnsetType = UNSET


class KeyRequest(Struct):
    """The key of an ad hoc filter."""

    key: str


class AnyRequest(Struct):
    """Whatever the plugin sends is ignored."""
