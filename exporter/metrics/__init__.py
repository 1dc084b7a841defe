"""Snapshots to Prometheus text and OpenMetrics. Families are declared once, in `families.py`."""
