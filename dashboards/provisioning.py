"""What Grafana finds at its start: the datasources of all three plugins, and where the dashboards are.

The addresses are those of `deploy/compose/compose.yaml`.
"""

from __future__ import annotations

from dashboards.dashboard import JSON, PROMETHEUS
from dashboards.panel import Json

EXPORTER = "http://exporter:9480"
DASHBOARD_FOLDER = "/etc/windmill/dashboards"


def datasources() -> Json:
    """The file of datasources."""
    return {
        "apiVersion": 1,
        "datasources": [
            _datasource(
                "Windmill (Prometheus)",
                "windmill-prometheus",
                PROMETHEUS,
                "http://prometheus:9090",
                {"httpMethod": "POST", "timeInterval": "15s"},
            ),
            _datasource("Windmill (history)", "windmill-json", JSON, f"{EXPORTER}/grafana", {}),
            _datasource(
                "Windmill (Infinity)",
                "windmill-infinity",
                "yesoreyeram-infinity-datasource",
                EXPORTER,
                {"allowedHosts": [EXPORTER]},
            ),
        ],
    }


def dashboard_providers() -> Json:
    """The file that says where the dashboards are."""
    return {
        "apiVersion": 1,
        "providers": [
            {
                "name": "windmill",
                "folder": "Windmill",
                "type": "file",
                "allowUiUpdates": False,
                "options": {"path": DASHBOARD_FOLDER},
            }
        ],
    }


def _datasource(name: str, uid: str, plugin: str, url: str, settings: Json) -> Json:
    return {
        "name": name,
        "uid": uid,
        "type": plugin,
        "access": "proxy",
        "url": url,
        "editable": False,
        "jsonData": settings,
    }
