"""Requests of Grafana's JSON datasource: every form is read, and what cannot be is refused by its name."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.errors import BadRequest
from exporter.queue.window import RequestedWindow
from exporter.web.grafana.metrics import METRICS
from exporter.web.grafana.request import (
    MAX_TARGETS,
    PayloadOptions,
    Query,
    Target,
    parse_payload_options,
    parse_query,
    parse_tag_key,
    parse_variable,
)
from exporter.web.grafana.tags import TagFilter
from tests.web.grafana_requests import FROM_MS, PANELS, RANGE, TO_MS

DELAY = METRICS["queue_delay"]


def query(*targets: object, **more: object) -> Query:
    """A request with these targets, a text standing for a target with nothing else."""
    described = [{"target": target} if isinstance(target, str) else target for target in targets]
    return parse_query({"targets": described, **more})


def refusal(body: object) -> BadRequest:
    """The error for a request that cannot be read."""
    with pytest.raises(BadRequest) as refused:
        parse_query(body)
    return refused.value


@pytest.mark.parametrize("name", PANELS)
def test_every_generation_of_plugins_is_read_as_the_same_request(name: str) -> None:
    """Field case F68."""
    assert parse_query(PANELS[name]) == Query(
        window=RequestedWindow(FROM_MS, TO_MS),
        slots=110,
        targets=(Target(DELAY, "A", ("deno", "b.c"), 50),),
        filters=(TagFilter(True, frozenset({"other"})),),
    )


def test_everything_but_targets_may_be_missing() -> None:
    """Field case F73."""
    assert query("queue_delay") == Query(RequestedWindow(), 120, (Target(DELAY, None, None, 50),), ())
    assert query() == Query(RequestedWindow(), 120, (), ())
    nulls = dict.fromkeys(["range", "maxDataPoints", "filters", "adhocFilters", "panelId", "intervalMs"])
    assert query("queue_delay", **nulls) == query("queue_delay")


@pytest.mark.parametrize("body", [None, {}, {"targets": None}, {"targets": {}}, {"targets": "queue_delay"}])
def test_targets_may_not(body: object) -> None:
    assert refusal(body).field == "targets"


@pytest.mark.parametrize("body", [[], [1], "queue_delay", 5, True])
def test_a_body_that_is_no_object_is_refused(body: object) -> None:
    assert refusal(body).field == "body"


@pytest.mark.parametrize(
    ("moment", "milliseconds"),
    [
        ("2019-11-22T07:23:23.836Z", FROM_MS),
        ("2019-11-22T07:23:23Z", FROM_MS - 836),
        ("2019-11-22T08:23:23.836+01:00", FROM_MS),
        ("2019-11-22T07:23:23.836", FROM_MS),
        ("2019-11-22T07:23:23.836999Z", FROM_MS),
        ("2019-11-22t07:23:23.836z", FROM_MS),
        ("2019-11-22 07:23:23.836Z", FROM_MS),
        ("1969-12-31T23:59:59.999Z", -1),
        (FROM_MS, FROM_MS),
        (float(FROM_MS), FROM_MS),
        (f" {FROM_MS} ", FROM_MS),
        (f"{FROM_MS}.4", FROM_MS),
        ("1.574407403836e12", FROM_MS),
        (0, 0),
        (-1, -1),
        ("", None),
        (None, None),
    ],
)
def test_a_bound_is_an_instant_or_epoch_milliseconds(moment: object, milliseconds: int | None) -> None:
    assert query(range={"from": moment}).window == RequestedWindow(milliseconds, None)
    assert query(range={"to": moment}).window == RequestedWindow(None, milliseconds)


@pytest.mark.parametrize(
    "moment",
    [
        "now-3h",
        "yesterday",
        "2019-13-01T00:00:00Z",
        "NaN",
        "Infinity",
        "\u0663",
        10**17,
        -(10**40),
        10**4000,
        1e300,
        True,
        [],
        {},
    ],
)
def test_a_bound_that_is_none_is_refused_by_its_name(moment: object) -> None:
    assert refusal({"targets": [], "range": {"from": moment}}).field == "range.from"
    assert refusal({"targets": [], "range": {"to": moment}}).field == "range.to"


def test_the_time_zone_and_the_raw_range_shift_nothing() -> None:
    moved = {"timezone": "Asia/Tokyo", "rangeRaw": {"from": "now-1y", "to": "now-1d"}}
    assert query(range=RANGE, **moved).window == RequestedWindow(FROM_MS, TO_MS)


@pytest.mark.parametrize(
    ("points", "slots"),
    [
        (None, 120),
        ("", 120),
        (550, 110),
        ("550", 110),
        (554.9, 110),
        (600, 120),
        (1, 20),
        (0, 20),
        (-5, 20),
        (1920, 120),
        (99_999_999_999, 120),
        (10**18, 120),
        (10**4000, 120),
        (1e308, 120),
        ("1e999", 120),
    ],
)
def test_a_narrow_panel_gets_fewer_slots_and_no_number_breaks_it(points: object, slots: int) -> None:
    """Field case F35."""
    assert query("queue_delay", maxDataPoints=points, intervalMs=1e18, panelId=2**40).slots == slots


@pytest.mark.parametrize("points", ["many", True, [], {}, "0x10", "\u0661"])
def test_a_number_that_is_none_is_refused_by_its_name(points: object) -> None:
    assert refusal({"targets": [], "maxDataPoints": points}).field == "maxDataPoints"


@pytest.mark.parametrize(
    "target",
    [
        None,
        {},
        {"refId": "A"},
        {"target": None},
        {"target": ""},
        {"target": "  "},
        {"target": "queue_delay", "hide": True},
        {"target": "half_typed", "hide": True},
    ],
)
def test_targets_that_are_hidden_or_not_filled_in_are_skipped(target: object) -> None:
    assert query(target).targets == ()
    assert len(query(target, "queue_delay").targets) == 1


@pytest.mark.parametrize("name", ["q", "queue_", "queue_count2", "QUEUE_COUNT", "select metric", "queue_coun:deno", 5])
def test_an_unknown_metric_is_refused_with_the_known_ones(name: object) -> None:
    """Field case F69: while somebody types, each prefix arrives."""
    refused = refusal({"targets": [{"target": "queue_count"}, {"target": name}]})
    assert refused.field == "targets[1].target"
    assert all(metric in str(refused) for metric in METRICS)
    assert str(name).partition(":")[0] in str(refused)


def test_tags_stand_behind_the_first_colon_and_a_payload_goes_before_them() -> None:
    assert [target.tags for target in query("queue_delay:", "queue_delay:a:b", "queue_delay : a , b").targets] == [
        None,
        ("a:b",),
        ("a", "b"),
    ]
    for payload, tags in [
        ({"tags": ["x"]}, ("x",)),
        ({"tag": "x"}, ("x",)),
        ({"tags": "x", "tag": "y"}, ("x",)),
        ({"tags": []}, ("a",)),
        ({"tags": "$tag"}, ("a",)),
        ({"other": 1}, ("a",)),
    ]:
        assert query({"target": "queue_delay:a", "payload": payload}).targets[0].tags == tags


@pytest.mark.parametrize(
    "payload", [None, "", " ", "{", "null", "5", "[1]", [], 5, False, '{"tags": NaN}', "[" * 100_000]
)
def test_a_payload_that_is_no_object_is_empty(payload: object) -> None:
    """Field case F68: the editor sends whatever was typed so far."""
    for field in ("payload", "data"):
        assert query({"target": "queue_delay", field: payload}).targets == query("queue_delay").targets


@pytest.mark.parametrize(
    ("limit", "number"), [(None, 50), ("", 50), (0, 0), ("0", 0), (7, 7), ("7", 7), (7.0, 7), (10**30, 1_000_000)]
)
def test_a_limit_is_a_whole_number(limit: object, number: int) -> None:
    assert query({"target": "queue_delay", "payload": {"limit": limit}}).targets[0].limit == number


@pytest.mark.parametrize("limit", [-1, "-1", 1.5, "many", "1e999", True, [], {}, "all"])
def test_another_limit_is_refused_by_its_name(limit: object) -> None:
    refused = refusal({"targets": [{"target": "queue_delay", "payload": {"limit": limit}}]})
    assert refused.field == "targets[0].payload.limit"


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ("queue_delay", "targets[0]"),
        (5, "targets[0]"),
        ([], "targets[0]"),
        ({"target": {}}, "targets[0].target"),
        ({"target": True}, "targets[0].target"),
        ({"target": "queue_delay", "payload": {"tags": {"a": 1}}}, "targets[0].payload.tags"),
        ({"target": "queue_delay", "payload": {"tags": [True]}}, "targets[0].payload.tags[0]"),
        ({"target": "queue_delay", "refId": []}, "targets[0].refId"),
        ({"target": "queue_delay", "refId": "A" * 101}, "targets[0].refId"),
    ],
)
def test_a_target_that_cannot_be_read_is_named(target: object, field: str) -> None:
    assert refusal({"targets": [target]}).field == field


def test_the_number_of_targets_is_bounded() -> None:
    assert len(query(*["queue_delay"] * MAX_TARGETS).targets) == MAX_TARGETS
    assert refusal({"targets": [{}] * (MAX_TARGETS + 1)}).field == "targets"


def test_filters_of_both_names_hold() -> None:
    named = {"key": "tag", "operator": "=", "value": "a"}
    assert len(query(filters=[named], adhocFilters=[named]).filters) == 2
    assert refusal({"targets": [], "filters": {}}).field == "filters"
    assert refusal({"targets": [], "adhocFilters": [5]}).field == "adhocFilters[0]"


@pytest.mark.parametrize(
    ("body", "target"),
    [
        ({"payload": {"target": "tags"}, "range": RANGE}, "tags"),
        ({"payload": '{"target": "tags"}'}, "tags"),
        ({"payload": " tags "}, "tags"),
        ({"target": "tags"}, "tags"),
        ({"payload": {"target": 5}}, "5"),
        ({"payload": {"target": None}}, ""),
        ({"payload": ""}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_a_variable_names_what_it_lists(body: object, target: str) -> None:
    assert parse_variable(body) == target


def test_the_small_requests_may_be_empty() -> None:
    assert parse_payload_options(None) == PayloadOptions("", "")
    assert parse_payload_options({"metric": "queue_count", "payload": {"tags": []}, "name": "tags"}) == PayloadOptions(
        "queue_count", "tags"
    )
    assert parse_tag_key(None) == ""
    assert parse_tag_key({"key": "tag"}) == "tag"


FIELDS = [
    "targets",
    "range",
    "from",
    "to",
    "maxDataPoints",
    "target",
    "payload",
    "data",
    "tags",
    "tag",
    "limit",
    "hide",
]
MORE_FIELDS = ["refId", "filters", "adhocFilters", "key", "operator", "value", "values", "metric", "name"]
WORDS = [
    *METRICS,
    "queue_delay:(a|b",
    "tag",
    "=~",
    "!~",
    "=|",
    "a.*(",
    "$__all",
    '{"tags": [[]]}',
    "1e999",
    "2026-01-01T00:00",
]
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**30, max_value=10**40)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(WORDS)
    | st.just(10**4000)
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS + MORE_FIELDS) | st.text(), inner, max_size=6)
    ),
    max_leaves=25,
)
likely = st.fixed_dictionaries(
    {"targets": st.lists(st.fixed_dictionaries({"target": st.sampled_from(WORDS)}, optional={"payload": anything}))},
    optional={
        "range": st.fixed_dictionaries({"from": scalars, "to": scalars}),
        "maxDataPoints": scalars,
        "filters": st.lists(
            st.fixed_dictionaries({"key": st.just("tag"), "operator": st.sampled_from(WORDS), "value": anything})
        ),
    },
)


def read(parse: Callable[[object], object], body: object) -> object:
    """What was read, or the error that names the field; any other error is raised."""
    try:
        return parse(body)
    except BadRequest as refused:
        return refused


@given(anything | likely)
def test_any_json_is_read_or_refused_by_the_name_of_a_field(body: object) -> None:
    for parse in (parse_query, parse_variable, parse_payload_options, parse_tag_key):
        result = read(parse, body)
        hash(result)
        if isinstance(result, BadRequest):
            assert result.field
            assert str(result).startswith(result.field)
            assert len(str(result)) < 300
            msgspec.json.encode(str(result))


@given(st.text(max_size=50))
def test_any_text_is_a_target_or_refused(text: str) -> None:
    for target in (text, f"queue_delay:{text}"):
        result = read(parse_query, {"targets": [{"target": target}]})
        assert isinstance(result, Query) or (isinstance(result, BadRequest) and result.field == "targets[0].target")
