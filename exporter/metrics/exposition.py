"""Metrics as text: Prometheus text format 0.0.4 and OpenMetrics 1.0, from the same samples.

Sorted and stable. A label value can be any string at all; two that become the same text give one sample, never two.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from operator import itemgetter

from exporter.metrics.values import Family, Metric

OPENMETRICS_END = b"# EOF\n"

# Neither a lone surrogate nor NUL can stand in UTF-8 text that every reader takes; PostgreSQL stores neither.
_UNWRITABLE = dict.fromkeys([0, *range(0xD800, 0xE000)], "\N{REPLACEMENT CHARACTER}")
_LABEL_ESCAPES = _UNWRITABLE | str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_TEXT_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
_labels_of = itemgetter(0)


class Exposition(StrEnum):
    """The two text formats."""

    TEXT = "text"
    OPENMETRICS = "openmetrics"


def escape_label(value: str) -> str:
    """A label value as it stands between its quotes, in both formats."""
    return value.translate(_LABEL_ESCAPES)


def format_number(value: float) -> str:
    """A number in a form that Go's ParseFloat reads: `+Inf`, `-Inf`, `NaN`, no digits lost."""
    if isinstance(value, int):
        return str(int(value))
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = repr(value)
    return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(text, text)


def render(metrics: Iterable[Metric], exposition: Exposition) -> bytes:
    """The text of `metrics`, ordered by name, without the `# EOF` that ends an OpenMetrics page."""
    parts: list[str] = []
    for metric in sorted(metrics, key=lambda metric: metric.family.name):
        parts.append(_head(metric.family, exposition))
        parts.extend(_lines(metric))
    return "".join(parts).encode()


def _head(family: Family, exposition: Exposition) -> str:
    if exposition is Exposition.TEXT:
        text = family.help.translate(_TEXT_HELP_ESCAPES)
        return f"# HELP {family.name} {text}\n# TYPE {family.name} {family.type}\n"
    stem = family.stem
    unit = f"# UNIT {stem} {family.unit}\n" if family.unit else ""
    return f"# HELP {stem} {escape_label(family.help)}\n# TYPE {stem} {family.type}\n{unit}"


def _lines(metric: Metric) -> Iterable[str]:
    """One line a sample, ordered by labels; the samples of one histogram stay in their order."""
    name, label_names = metric.family.name, metric.family.labels
    lines: dict[str, str] = {}
    for labels, value, suffix, upper_bound in sorted(metric.samples, key=_labels_of):
        pairs = [f'{label}="{escape_label(text)}"' for label, text in zip(label_names, labels, strict=True)]
        if upper_bound:
            pairs.append(f'le="{upper_bound}"')
        series = f"{name}{suffix}{{{','.join(pairs)}}}" if pairs else name + suffix
        lines.setdefault(series, f"{series} {format_number(value)}\n")
    return lines.values()
