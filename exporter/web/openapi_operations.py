"""Every operation of the service as the description shows it: declared once, beside the routes it describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from exporter.web.admission import MAX_PULLS, AdmissionAnswer
from exporter.web.fairness import FairnessAnswer
from exporter.web.grafana.answer import SeriesEntry, TableEntry
from exporter.web.openapi_shapes import (
    AnyRequest,
    DataRequest,
    FairnessEvent,
    FilterKey,
    FilterValue,
    KeyRequest,
    OfferedMetric,
    Option,
    OptionsRequest,
    SeriesWindow,
    State,
    StoredRows,
    VariableRequest,
    VariableValue,
)
from exporter.web.queue_api import CurrentRow, PointRow, StepRow
from exporter.web.status.assets import CONTENT_TYPES
from exporter.web.windmill_api import TagStatus

JSON: Final = "application/json"
# What the pattern of a bound takes.
MAX_BOUND: Final = 10**18 - 1


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query; none is required. `schema` is JSON Schema.

    `explode`, for lists: whether the parameter is repeated, or holds them all separated by commas.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    explode: bool | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `rows` are what an answer that is an array may hold; `answer` is any other JSON.

    `statuses` are those beyond what follows from the rest: 200, 400 where something is asked, 413 where a body is read,
    and where credentials count 401 and 503.
    """

    summary: str
    answer: Any = None
    rows: tuple[type, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: type | None = None
    media_types: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()
    is_open: bool = False
    can_be_refused: bool = True


def _moment(name: str, which: str) -> Parameter:
    integer = {"type": "integer", "minimum": -MAX_BOUND, "maximum": MAX_BOUND}
    return Parameter(name, f"{which} of the window in epoch milliseconds; without both: the last 24 h", integer)


TEXTS: Final = MappingProxyType({"type": "array", "items": {"type": "string"}})
WINDOW: Final = (_moment("from", "Begin"), _moment("to", "End"))
TAGS: Final = (
    Parameter("tags", "Only these tags, separated by commas", TEXTS, explode=False),
    Parameter("tag", "Only this tag, taken literally; any number of times", TEXTS, explode=True),
)
KIND: Final = Parameter("series", "What is drawn", {"type": "string", "enum": ["count", "delay"], "default": "count"})
SECONDS: Final = Parameter(
    "window_secs", "Length of the window, clamped to 60 s to 14 days", {"type": "integer", "maximum": MAX_BOUND}
)
TIES: Final = Parameter(
    "ties",
    "nudge: times rise strictly; exact: verticals share a millisecond",
    {"type": "string", "enum": ["exact", "nudge"], "default": "exact"},
)
STEP: Final = Parameter(
    "step", "Seconds of a step; without it 120 steps", {"type": "number", "exclusiveMinimum": 0, "maximum": 10**12 - 1}
)
PULLS: Final = Parameter(
    "pulls", "Independent draws", {"type": "integer", "minimum": 1, "maximum": MAX_PULLS, "default": 1}
)
NAMES: Final = Parameter("name[]", "Only the families of these names", TEXTS, explode=True)
PLAIN_METRICS: Final = ("text/plain", "application/openmetrics-text")

GET_OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        "/": Operation(
            "The status page; one word for clients that do not accept HTML", State, media_types=("text/html",)
        ),
        "/metrics": Operation(
            "Prometheus metrics", parameters=(NAMES,), media_types=PLAIN_METRICS, can_be_refused=False
        ),
        "/-/healthy": Operation("Liveness", State, is_open=True),
        "/-/ready": Operation("Readiness", State, statuses=(503,), is_open=True),
        "/api/openapi.json": Operation("This description", dict[str, Any]),
        "/api/fairness": Operation("Everything that explains the present state of fairness", FairnessAnswer),
        "/api/admission": Operation(
            "Whether a dispatcher's next pulls may take jobs of capped workspaces", AdmissionAnswer, parameters=(PULLS,)
        ),
        "/api/workers/queue_metrics_series": Operation(
            "Every tag's lines in a window", SeriesWindow, parameters=(*WINDOW, SECONDS, TIES)
        ),
        "/api/workers/queue_metrics": Operation("The stored rows of 14 days", rows=(StoredRows,), statuses=(413,)),
        "/api/workers/queue_status": Operation("Every tag with jobs waiting or running", rows=(TagStatus,)),
        "/api/workers/queue_counts": Operation("Waiting jobs by tag", dict[str, int]),
        "/api/workers/queue_running_counts": Operation("Running jobs by tag", dict[str, int]),
        "/api/workers/workspace_fairness_events": Operation(
            "The latest caps and uncaps, newest first", rows=(FairnessEvent,)
        ),
        "/api/queue/current": Operation(
            "One row a tag: the queue now", rows=(CurrentRow,), parameters=TAGS, can_be_refused=False
        ),
        "/api/queue/points": Operation(
            "Vertices as rows, by time", rows=(PointRow,), parameters=(KIND, *TAGS, *WINDOW)
        ),
        "/api/queue/grid": Operation(
            "Means over time and maxima in equal steps", rows=(StepRow,), parameters=(KIND, *TAGS, *WINDOW, STEP)
        ),
        "/grafana": Operation("For Grafana's Save & test", State),
        **{
            f"/assets/{name}": Operation("A file of the status page", media_types=(kind,))
            for name, kind in CONTENT_TYPES.items()
        },
    }
)
_METRICS: Final = Operation("The metrics to choose from", rows=(OfferedMetric,), body=AnyRequest)
_RELOAD: Final = Operation("Read the configuration anew, where that is enabled", State, statuses=(403, 500))
POST_OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        "/grafana/metrics": _METRICS,
        "/grafana/search": _METRICS,
        "/grafana/metric-payload-options": Operation(
            "The values of a field of a metric", rows=(Option,), body=OptionsRequest
        ),
        "/grafana/query": Operation("The data of a panel", rows=(SeriesEntry, TableEntry), body=DataRequest),
        "/grafana/variable": Operation(
            "The values of a dashboard variable", rows=(VariableValue,), body=VariableRequest
        ),
        "/grafana/tag-keys": Operation("The keys of ad hoc filters", rows=(FilterKey,), body=AnyRequest),
        "/grafana/tag-values": Operation("The values of ad hoc filters", rows=(FilterValue,), body=KeyRequest),
        "/-/reload": _RELOAD,
    }
)
PUT_OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType({"/-/reload": _RELOAD})
