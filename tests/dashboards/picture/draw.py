"""Draws `docs/queue-history.png` from a running demo, with the libraries that Grafana itself uses.

    make demo                                                       # leave it running for some minutes
    python -m tests.dashboards.picture.draw http://127.0.0.1:PORT   # needs node, npm and chromium

`@grafana/data` turns the answers into frames and joins them, uPlot draws the lines.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.requirements import find_program
from tests.sources import PROJECT
from tests.web.grafana_data import INSTALL, install

HERE = Path(__file__).parent
PICTURE = PROJECT / "docs" / "queue-history.png"
PANELS = (
    ("queue_count", "Waiting jobs by tag", "short"),
    ("queue_delay", "Wait of the head by tag (symmetric logarithmic axis)", "s"),
)


def ask(url: str, metric: str, seconds: float) -> bytes:
    """The body of the answer for the last `seconds`."""
    now = int(time.time() * 1000)
    window = {"from": now - int(seconds * 1000), "to": now}
    body = {"range": window, "maxDataPoints": 1168, "targets": [{"refId": "A", "target": metric}]}
    address = f"{url}/grafana/query"
    request = Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310 -- ours
    with urlopen(request) as answer:  # noqa: S310 -- the address that the caller gave
        return bytes(answer.read())


def panel(url: str, metric: str, title: str, unit: str, seconds: float) -> Mapping[str, Any]:
    """One panel: the joined series with their names."""
    answer = ask(url, metric, seconds)
    names = [entry["target"] for entry in json.loads(answer)]
    columns = [field.values for field in install().read(answer).joined]
    return {"title": title, "unit": unit, "names": names, "columns": columns}


def caps(url: str, seconds: float) -> Sequence[Any]:
    """The caps as (from, to) in epoch milliseconds; the last may be open."""
    [table] = json.loads(ask(url, "fairness_events", seconds))
    return [row[:2] for row in table["rows"]]


def page(panels: Sequence[Mapping[str, Any]], spans: Sequence[Any], library: Path) -> str:
    """The page that draws the panels."""
    values = {
        "@STYLE@": (library / "uPlot.min.css").read_text(),
        "@LIBRARY@": (library / "uPlot.iife.min.js").read_text(),
        "@PANELS@": json.dumps(panels).replace("</", "<\\/"),
        "@CAPS@": json.dumps(spans),
    }
    text = (HERE / "page.html").read_text()
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def draw(html: str, folder: Path, picture: Path) -> None:
    """Let a headless browser draw the page."""
    source = folder / "page.html"
    source.write_text(html)
    subprocess.run(
        [
            str(find_program("chromium")),
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--user-data-dir={folder / 'profile'}",
            "--window-size=1200,700",
            f"--screenshot={picture}",
            source.as_uri(),
        ],
        check=True,
        capture_output=True,
    )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="base URL of the exporter")
    parser.add_argument("--seconds", type=float, default=600, help="how much of the past to draw")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "package.json").write_text((HERE / "package.json").read_text())
        subprocess.run(INSTALL, cwd=folder, check=True, capture_output=True)
        panels = [panel(options.url, *each, options.seconds) for each in PANELS]
        html = page(panels, caps(options.url, options.seconds), folder / "node_modules" / "uplot" / "dist")
        draw(html, folder, PICTURE)


if __name__ == "__main__":
    main()
