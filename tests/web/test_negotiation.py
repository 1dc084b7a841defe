"""Which form a client gets for the headers that it sends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.metrics.exposition import Exposition
from exporter.web.negotiation import accepts_gzip, accepts_html, choose_metrics_form, parse_accept

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/*", TEXT),
        ("text/html,application/xhtml+xml,*/*;q=0.8", TEXT),
        ("application/json", TEXT),
        ("text/plain", TEXT),
        ("text/plain;version=0.0.4;q=1", TEXT),
        (PROMETHEUS_2, OPENMETRICS),
        (PROMETHEUS_3, f"{OPENMETRICS}; escaping=allow-utf-8"),
        ("application/openmetrics-text", OPENMETRICS),
        ('Application/OpenMetrics-Text ; Version = "1.0.0"', OPENMETRICS),
        ("application/openmetrics-text;version=0.0.1", OPENMETRICS.replace("1.0.0", "0.0.1")),
        ("application/openmetrics-text;version=1.0.0;escaping=underscores", f"{OPENMETRICS}; escaping=underscores"),
        ("application/openmetrics-text;version=1.0.0;escaping=dots", f"{OPENMETRICS}; escaping=dots"),
        ("application/openmetrics-text;version=1.0.0;escaping=values", f"{OPENMETRICS}; escaping=values"),
        ("application/openmetrics-text;version=1.0.0;escaping=made-up", OPENMETRICS),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", TEXT.replace("0.0.4", "1.0.0") + "; escaping=allow-utf-8"),
        ("application/openmetrics-text;version=9.9", OPENMETRICS),
        ("text/plain;version=9.9", TEXT),
        ("application/openmetrics-text;version=9.9,text/plain;version=0.0.4;q=0.1", TEXT),
        ("application/openmetrics-text;version=9.9,application/openmetrics-text;version=1.0.0;q=0.1", OPENMETRICS),
        ("application/openmetrics-text;q=0,text/plain;q=0.1", TEXT),
        ("application/openmetrics-text;q=0", TEXT),
        ("text/plain;q=0.9,application/openmetrics-text;q=0.8", TEXT),
        ("application/openmetrics-text;q=nan,text/plain;q=0.1", TEXT),
        ("application/openmetrics-text;q=2,text/plain;q=0.1", TEXT),
        ("application/openmetrics-text;q=-1", TEXT),
        ("application/openmetrics-text;q=abc", TEXT),
        (",;,=;q=,", TEXT),
    ],
)
def test_the_metrics_form_follows_the_accept_header(accept: str, content_type: str) -> None:
    """Field cases F77 and F78: one known type, an escaping that the client named, known versions only."""
    form = choose_metrics_form(accept)
    assert form.content_type == content_type
    assert (form.exposition is Exposition.OPENMETRICS) == content_type.startswith("application/openmetrics-text")


@given(st.text(st.sampled_from('gzip*/;=,.q01aé "\t\x7f'), max_size=60))
def test_no_header_is_an_error(header: str) -> None:
    assert choose_metrics_form(header).content_type == TEXT
    assert accepts_gzip(header) in {True, False}
    assert not accepts_html(header)


@pytest.mark.parametrize(
    ("accept_encoding", "expected"),
    [
        ("", False),
        ("*", False),
        ("identity", False),
        ("br, deflate", False),
        ("gzip", True),
        ("GZIP", True),
        ("deflate, gzip;q=1.0, *;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip;q=0.0, *", False),
        ("gzip;q=0.001", True),
        ("gzip;q=0.5, identity", False),
        ("gzip, identity;q=0.5", True),
        ("gzip;q=x", False),
        ("notgzip", False),
    ],
)
def test_gzip_only_when_it_is_asked_for(accept_encoding: str, expected: bool) -> None:
    assert accepts_gzip(accept_encoding) is expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("application/xhtml+xml", True),
        ("*/*", False),
        ("", False),
        ("application/json, text/plain, */*", False),
        ("text/html;q=0", False),
    ],
)
def test_html_only_for_those_who_name_it(accept: str, expected: bool) -> None:
    assert accepts_html(accept) is expected


def test_elements_come_best_first_and_equal_ones_in_the_order_of_the_header() -> None:
    assert [item.name for item in parse_accept("a;q=0.2, b, c;q=0.2, d;q=0, e")] == ["b", "e", "a", "c"]
