"""Grafana dashboards, Prometheus rules and provisioning files, generated from here by `python -m dashboards.build`."""
