"""Metrics as text: Prometheus text format 0.0.4 and OpenMetrics 1.0, from the same samples.

Sorted and stable. A label value can be any string at all; two that become the same text give one sample, never two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from operator import itemgetter
from typing import TypeAlias

from exporter.metrics.values import Family, Metric

OPENMETRICS_END = b"# EOF\n"

# Neither a lone surrogate nor NUL can stand in UTF-8 text that every reader takes; PostgreSQL stores neither.
_UNWRITABLE = dict.fromkeys([0, *range(0xD800, 0xE000)], "\N{REPLACEMENT CHARACTER}")
_LABEL_ESCAPES = _UNWRITABLE | str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_TEXT_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
_NOT_FINITE = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}
_labels_of = itemgetter(0)

# The same tags stand in several families: their text is made once a page.
LabelTexts: TypeAlias = dict[tuple[tuple[str, ...], tuple[str, ...]], str]


class Exposition(StrEnum):
    """The two text formats."""

    TEXT = "text"
    OPENMETRICS = "openmetrics"


def escape_label(value: str) -> str:
    """A label value as it stands between its quotes, in both formats."""
    if value.isprintable() and '"' not in value and "\\" not in value:
        return value
    return value.translate(_LABEL_ESCAPES)


def format_number(value: float) -> str:
    """A number in a form that Go's ParseFloat reads: `+Inf`, `-Inf`, `NaN`, no digits lost."""
    if isinstance(value, int):
        return str(int(value))
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = repr(value)
    return _NOT_FINITE.get(text, text)


def render(metrics: Iterable[Metric], exposition: Exposition) -> bytes:
    """The text of `metrics`, ordered by name, without the `# EOF` that ends an OpenMetrics page."""
    parts: list[str] = []
    known: LabelTexts = {}
    for metric in sorted(metrics, key=lambda metric: metric.family.name):
        parts.append(_head(metric.family, exposition))
        parts.extend(_lines(metric, known))
    return "".join(parts).encode()


def _head(family: Family, exposition: Exposition) -> str:
    if exposition is Exposition.TEXT:
        text = family.help.translate(_TEXT_HELP_ESCAPES)
        return f"# HELP {family.name} {text}\n# TYPE {family.name} {family.type}\n"
    stem = family.stem
    unit = f"# UNIT {stem} {family.unit}\n" if family.unit else ""
    return f"# HELP {stem} {escape_label(family.help)}\n# TYPE {stem} {family.type}\n{unit}"


def _lines(metric: Metric, known: LabelTexts) -> Iterator[str]:
    """One line a sample, ordered by labels; the samples of one histogram stay in their order."""
    name, label_names = metric.family.name, metric.family.labels
    numbers: dict[str, float] = {}
    for labels, value, suffix, upper_bound in sorted(metric.samples, key=_labels_of):
        key = (label_names, labels)
        text = known.get(key)
        if text is None:
            text = known[key] = _label_text(label_names, labels)
        if upper_bound:
            text = f'{text},le="{upper_bound}"' if text else f'le="{upper_bound}"'
        series = f"{name}{suffix}{{{text}}}" if text else name + suffix
        numbers.setdefault(series, value)
    return (f"{series} {format_number(value)}\n" for series, value in numbers.items())


def _label_text(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    return ",".join(f'{name}="{escape_label(value)}"' for name, value in zip(names, values, strict=True))
