"""The table of metrics for the documentation, from the one table of families."""

from __future__ import annotations

from exporter.metrics.families import FAMILIES
from exporter.metrics.values import Family, Origin

HEAD = "| metric | type | labels | read across replicas with | meaning |\n| --- | --- | --- | --- | --- |\n"


def reference_table() -> str:
    """All families as a Markdown table, ordered by name."""
    return HEAD + "".join(_row(family) for family in FAMILIES.values())


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    across = "`max`" if family.origin is Origin.CLUSTER else "each by itself"
    return f"| `{family.name}` | {family.type} | {labels} | {across} | {family.help} |\n"
