"""The tags that a request means: every way in which Grafana writes a choice of several, and ad hoc filters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exporter.errors import BadRequest
from exporter.web.grafana.tags import (
    MAX_FILTERS,
    MAX_TAGS,
    MAX_WILDCARD_PATTERNS,
    TagFilter,
    admitted,
    read_filters,
    read_tags,
)
from tests.queue.scene import HOSTILE_NAMES

SPECIAL = re.compile(r"[\\^$*+?.()|\[\]{}/]")
tag_names = st.text(min_size=1, max_size=12)


def grafana_escape(value: str) -> str:
    """What Grafana does to a value that it puts into a text as a regular expression."""
    return SPECIAL.sub(lambda match: "\\" + match[0], value)


def filters(operator: str, value: object = None, **more: object) -> tuple[TagFilter, ...]:
    """One filter on `tag`."""
    return read_filters([{"key": "tag", "operator": operator, "value": value, **more}], "filters")


UNFILLED = ["", "$__all", "$tag", "${tag}", "${tag:json}", "[[tag]]"]


@pytest.mark.parametrize("value", [None, *UNFILLED, "  ", "{}", "()", ",", [], "[]", *([each] for each in UNFILLED)])
def test_nothing_and_a_variable_that_was_not_filled_in_mean_all(value: object) -> None:
    assert read_tags(value, "tags") is None


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("deno", ["deno"]),
        ("deno,python3", ["deno", "python3"]),
        (" deno , python3 ,", ["deno", "python3"]),
        ("deno|python3", ["deno", "python3"]),
        ("{deno,python3}", ["deno", "python3"]),
        ("(deno|python3)", ["deno", "python3"]),
        (r"(a|b\.c)", ["a", "b.c"]),
        (r"(a\|b|c\\|\(d\))", ["a|b", "c\\", "(d)"]),
        (r"b\.c", ["b.c"]),
        (r"a\,b", ["a,b"]),
        ("(a,b|c)", ["a,b", "c"]),
        ("{a|b}", ["a|b"]),
        ("(a", ["(a"]),
        ("a\\", ["a\\"]),
        ("deno,deno", ["deno"]),
        ("a\nb", ["a\nb"]),
        ('["a,b","c"]', ["a,b", "c"]),
        ("[gpu]", ["[gpu]"]),
        ("[1]", ["[1]"]),
        ("[" * 500 + "]" * 500, ["[" * 500 + "]" * 500]),
    ],
)
def test_a_text_is_split_as_grafana_joins(text: str, tags: list[str]) -> None:
    assert read_tags(text, "tags") == tuple(tags)


@given(st.lists(tag_names.filter(lambda tag: tag.strip() == tag), min_size=2, unique=True))
@example(list(HOSTILE_NAMES[:15]))
def test_whatever_a_variable_of_several_holds_arrives(tags: list[str]) -> None:
    """Grafana joins several values as a regular expression, `(a|b\\.c)`."""
    text = "(" + "|".join(map(grafana_escape, tags)) + ")"
    assert read_tags(text, "tags") == tuple(tags)


@given(tag_names.filter(lambda tag: tag.strip() == tag and "," not in tag))
@example("$A")
@example("$__all")
@example("${tag}")
def test_whatever_a_variable_of_one_holds_arrives(tag: str) -> None:
    assert read_tags(grafana_escape(tag), "tags") == (tag,)


@pytest.mark.parametrize("tag", [*HOSTILE_NAMES, "a,b", "(a|b)", "{a,b}", r"b\.c", "NaN", "$x y"])
def test_the_elements_of_a_list_are_literal(tag: str) -> None:
    assert read_tags([tag], "tags") == (tag,)
    assert read_tags([tag, "deno", tag], "tags") == (tag, "deno")


def test_numbers_are_tags_as_they_are_written() -> None:
    assert read_tags([1, 2.5, "3"], "tags") == ("1", "2.5", "3")
    assert read_tags(7, "tags") == ("7",)


def test_all_among_others_is_all() -> None:
    assert read_tags(["deno", "$__all"], "tags") is None
    assert read_tags("deno,$__all", "tags") is None


@pytest.mark.parametrize(
    ("value", "field"), [({"a": 1}, "tags"), (True, "tags"), ([["a"]], "tags[0]"), (["a", {}], "tags[1]")]
)
def test_what_is_no_tag_is_named(value: object, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read_tags(value, "tags")
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: expected a text, got ")


def test_more_tags_than_a_statement_should_hold_are_refused() -> None:
    assert read_tags([str(number) for number in range(MAX_TAGS)], "tags") is not None
    with pytest.raises(BadRequest, match="at most 10000 tags, got 10001"):
        read_tags([str(number) for number in range(MAX_TAGS + 1)], "tags")


TAGS = ("deno", "python3", "python3-gpu", "b.c", "bxc", "it's 100%", 'say "hi"', "a|b", "")


@pytest.mark.parametrize(
    ("operator", "value", "passing"),
    [
        ("=", "deno", {"deno"}),
        ("=", "python", set()),
        ("=", "it's 100%", {"it's 100%"}),
        ("=", 'say "hi"', {'say "hi"'}),
        ("!=", "deno", set(TAGS) - {"deno"}),
        ("!=", "den", set(TAGS)),
        ("=~", "deno", {"deno"}),
        ("=~", "python", set()),
        ("=~", "python.*", {"python3", "python3-gpu"}),
        ("=~", ".*3.*", {"python3", "python3-gpu"}),
        ("=~", "p.*3.*u", {"python3-gpu"}),
        ("=~", "python3.*3", set()),
        ("=~", ".*", set(TAGS)),
        ("=~", "^(deno|python3)$", {"deno", "python3"}),
        ("=~", "^deno$|^python3$", {"deno", "python3"}),
        ("=~", r"b\.c", {"b.c"}),
        ("=~", "b.c", {"b.c"}),
        ("=~", r"a\|b", {"a|b"}),
        ("=~", r"a\$", set()),
        ("=~", ".*100%", {"it's 100%"}),
        ("!~", "python.*|deno", set(TAGS) - {"deno", "python3", "python3-gpu"}),
        ("!~", "", set(TAGS)),
        ("=|", "deno|python3", {"deno", "python3"}),
        ("=|", "deno,python3", {"deno", "python3"}),
        ("=|", ["deno", "b.c"], {"deno", "b.c"}),
        ("!=|", "deno|python3", set(TAGS) - {"deno", "python3"}),
        ("=|", "$__all", set(TAGS)),
    ],
)
def test_each_operator_is_honoured_and_anchored(operator: str, value: object, passing: set[str]) -> None:
    """Field case F72."""
    assert set(admitted(TAGS, filters(operator, value))) == passing


def test_one_of_takes_its_values_as_they_are() -> None:
    assert admitted(TAGS, filters("=|", "deno", values=["a|b", "b.c"])) == ("b.c", "a|b")


def test_every_filter_must_pass() -> None:
    both = (*filters("=~", "python.*"), *filters("!=", "python3"))
    assert admitted(TAGS, both) == ("python3-gpu",)
    assert admitted(TAGS, ()) == TAGS


def test_filters_on_other_keys_are_ignored() -> None:
    assert read_filters([{"key": "City", "operator": "<", "value": "Berlin"}, {}, {"key": 5}], "filters") == ()


@pytest.mark.parametrize("operator", ["<", ">", "<=", "~", "", None, "= ", "like", "💥"])
def test_an_unknown_operator_is_refused_with_its_text(operator: Any) -> None:
    with pytest.raises(BadRequest) as refused:
        filters(operator, "deno")
    assert refused.value.field == "filters[0].operator"
    assert f'got "{operator or ""}"' in str(refused.value)


@pytest.mark.parametrize(
    "pattern", ["a+", "a*", "[ab]", "(a", "a)", r"\d", "a?", "a{2}", "x(a|b)", "a^", "$a", "a\\", ".**"]
)
def test_other_syntax_is_refused_and_not_taken_for_text(pattern: str) -> None:
    with pytest.raises(BadRequest) as refused:
        filters("=~", pattern)
    assert refused.value.field == "filters[0].value"


simple = st.text(alphabet="ab", max_size=4)


@given(st.lists(st.lists(simple, min_size=1, max_size=4), min_size=1, max_size=3), st.lists(st.text("abc", max_size=8)))
def test_a_pattern_matches_what_the_regular_expression_would(alternatives: list[list[str]], tags: list[str]) -> None:
    pattern = "|".join(".*".join(pieces) for pieces in alternatives)
    expected = tuple(tag for tag in tags if tag and re.fullmatch(pattern, tag))
    assert admitted([tag for tag in tags if tag], filters("=~", pattern)) == expected


@given(tag_names)
def test_a_value_that_grafana_escapes_matches_itself_alone(tag: str) -> None:
    named = filters("=~", grafana_escape(tag))
    assert admitted((tag, tag + "x", "x" + tag), named) == (tag,)


def test_a_pattern_made_to_be_slow_is_not() -> None:
    """A backtracking matcher would need longer than the universe has."""
    assert admitted(["a" * 250 + "b"], filters("=~", "a.*" * 100 + "c")) == ()


def test_requests_for_too_much_work_are_refused() -> None:
    with pytest.raises(BadRequest, match="at most 32 patterns"):
        filters("=~", "|".join(f"a{number}.*" for number in range(MAX_WILDCARD_PATTERNS + 1)))
    with pytest.raises(BadRequest, match="at most 50 filters"):
        read_filters([{}] * (MAX_FILTERS + 1), "filters")
    with pytest.raises(BadRequest, match="at most 10000 alternatives"):
        filters("=~", "a|" * (MAX_TAGS + 1))
