"""Both text formats, read back by prometheus_client's parsers and linted by promtool, for any label value."""

from __future__ import annotations

import math
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exporter.metrics import families
from exporter.metrics.exposition import OPENMETRICS_END, Exposition, escape_label, format_number, render
from exporter.metrics.labelled import labelled
from exporter.metrics.values import Family, FamilyType, Metric, Origin, Sample
from tests.metrics.scenes import collected, full_snapshot, own_metrics, parsed
from tests.requirements import find_program

BOTH = pytest.mark.parametrize("exposition", list(Exposition))
anything = st.text(st.characters(codec=None), max_size=255)
HOSTILE = [
    "",
    "plain",
    'quote"',
    "back\\slash",
    "\\n",
    "new\nline",
    "\r\n",
    "\x00",
    "\x85\u2028\u2029",
    "\ud800",
    "a\udfff",
    'x"} 1\nwindmill_queue_waiting_jobs{tag="injected"} 99\n#',
    "# EOF",
    "{}[],=",
    "\U0001f980 \u202e",
    " space ",
    "x" * 255,
]


def page(metrics: list[Metric], exposition: Exposition) -> bytes:
    return render(metrics, exposition) + (OPENMETRICS_END if exposition is Exposition.OPENMETRICS else b"")


def writable(text: str) -> str:
    """What a label value becomes: itself, but for code points that no UTF-8 text has, and NUL."""
    return "".join("\ufffd" if char == "\x00" or "\ud800" <= char <= "\udfff" else char for char in text)


def lint(text: bytes) -> subprocess.CompletedProcess[bytes]:
    """What `promtool check metrics` says."""
    return subprocess.run(
        [str(find_program("promtool")), "check", "metrics"], input=text, capture_output=True, check=False
    )


@BOTH
@given(st.lists(anything, max_size=8))
@example(HOSTILE)
def test_every_label_value_is_read_back_as_it_was(exposition: Exposition, tags: list[str]) -> None:
    metric = labelled(families.WAITING, [(tag, number) for number, tag in enumerate(tags)])
    read = parsed(page([metric], exposition), exposition)
    labels = {(("tag", writable(tag)),) for tag in tags}
    assert set(read) == {(families.WAITING.name, label) for label in labels}


@BOTH
@pytest.mark.parametrize("pair", [("a\ud800", "a\udfff"), ("\x00", "\ufffd"), ("same", "same")])
def test_two_values_that_become_one_text_give_one_sample(exposition: Exposition, pair: tuple[str, str]) -> None:
    text = page([labelled(families.WAITING, [(pair[0], 1), (pair[1], 2)])], exposition)
    assert len(parsed(text, exposition)) == 1


@BOTH
@given(st.tuples(anything, anything), st.tuples(anything, anything))
@example(('a",reason="b', "c"), ("a", 'b",reason="c'))
def test_pairs_of_labels_never_run_into_each_other(
    exposition: Exposition, first: tuple[str, str], second: tuple[str, str]
) -> None:
    metric = Metric(families.COLLECTOR_FAILURES, (Sample(first, 1), Sample(second, 2)))
    read = parsed(page([metric], exposition), exposition)
    distinct = {tuple(map(writable, pair)) for pair in (first, second)}
    assert {(dict(labels)["collector"], dict(labels)["reason"]) for _, labels in read} == distinct


@BOTH
@given(st.one_of(st.floats(), st.integers(-(2**62), 2**62), st.booleans()))
def test_every_number_is_read_back_without_a_lost_digit(exposition: Exposition, number: float) -> None:
    [value] = parsed(page([Metric(families.UP, (Sample((), number),))], exposition), exposition).values()
    assert float(value) == float(number) or (math.isnan(value) and math.isnan(number))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (True, "1"),
        (0, "0"),
        (-0.5, "-0.5"),
        (3.0, "3"),
        (1e15, "1000000000000000.0"),
        (1e300, "1e+300"),
        (1.5e-7, "1.5e-07"),
        (1_800_000_000.123456, "1800000000.123456"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_go_reads_them(number: float, text: str) -> None:
    assert format_number(number) == text


def test_escaping_touches_only_what_the_formats_demand() -> None:
    assert escape_label('a\\b"c\nd\te\rf') == 'a\\\\b\\"c\\nd\te\rf'


def test_families_and_samples_are_sorted_whatever_the_order_of_the_input() -> None:
    metrics = [labelled(families.WAITING, [("b", 1), ("a", 2)]), labelled(families.DELAY, [("z", 3), ("y", 4)])]
    text = render(metrics, Exposition.TEXT)
    assert text == render(list(reversed(metrics)), Exposition.TEXT)
    assert [line.split(" ")[0] for line in text.decode().splitlines() if not line.startswith("#")] == [
        'windmill_queue_delay_seconds{tag="y"}',
        'windmill_queue_delay_seconds{tag="z"}',
        'windmill_queue_waiting_jobs{tag="a"}',
        'windmill_queue_waiting_jobs{tag="b"}',
    ]


def test_counters_have_their_suffix_and_no_creation_time() -> None:
    counter = labelled(families.SAMPLES, [("stored", 3)])
    assert render([counter], Exposition.TEXT).decode().splitlines()[1:] == [
        "# TYPE windmill_queue_samples_total counter",
        'windmill_queue_samples_total{result="stored"} 3',
    ]
    assert render([counter], Exposition.OPENMETRICS).decode().splitlines()[1:] == [
        "# TYPE windmill_queue_samples counter",
        'windmill_queue_samples_total{result="stored"} 3',
    ]


def test_units_are_declared_where_openmetrics_has_them() -> None:
    delay = labelled(families.DELAY, [("a", 1)])
    assert b"# UNIT windmill_queue_delay_seconds seconds\n" in render([delay], Exposition.OPENMETRICS)
    assert b"# UNIT" not in render([delay], Exposition.TEXT)


@BOTH
def test_a_help_text_cannot_break_out_of_its_line(exposition: Exposition) -> None:
    family = Family("windmill_x", FamilyType.GAUGE, "", (), 'One\n# TYPE "two" \\ three', Origin.REPLICA)
    lines = render([Metric(family, (Sample((), 1),))], exposition).decode().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("# HELP windmill_x One\\n# TYPE ")


@BOTH
def test_the_whole_page_passes_the_strict_parser(exposition: Exposition) -> None:
    own = own_metrics()
    own.observe_request("/metrics", 200, 0.003)
    metrics = [*collected(full_snapshot()).metrics, *own.metrics()]
    read = parsed(page(metrics, exposition), exposition)
    assert len(read) == sum(len(metric.samples) for metric in metrics)
    assert not [name for name, _ in read if name.endswith("_created")]


@pytest.mark.needs("promtool")
def test_promtool_has_nothing_to_say() -> None:
    """Field case F53: exit code 0 and no output, hostile label values included."""
    metrics = {each.family: each for each in [*collected(full_snapshot()).metrics, *own_metrics().metrics()]}
    metrics[families.WAITING] = labelled(families.WAITING, [(tag, 1) for tag in HOSTILE])
    text = render(metrics.values(), Exposition.TEXT)
    check = lint(text)
    assert (check.returncode, check.stdout, check.stderr) == (0, b"", b"")


@pytest.mark.needs("promtool")
def test_promtool_would_say_it() -> None:
    """The lint above can fail: a gauge that ends in `_count` is refused."""
    bad = Metric(Family("windmill_x_count", FamilyType.GAUGE, "", (), "Bad.", Origin.REPLICA), (Sample((), 1),))
    text = render([bad], Exposition.TEXT)
    check = lint(text)
    assert check.returncode == 3
