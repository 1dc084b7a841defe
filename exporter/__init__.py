"""Windmill fairness exporter: per-workspace fairness and queue metrics of a Windmill database."""

from __future__ import annotations

__version__ = "0.1.0"
