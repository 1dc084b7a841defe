"""The one import of prometheus_client.

The library decides on its import, for the whole process, to keep every value in files when PROMETHEUS_MULTIPROC_DIR
is set. An environment shared with another container sets it for that container's sake; here it is hidden meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

MULTIPROCESS_VARIABLES = ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir")


@contextmanager
def _hidden(names: tuple[str, ...]) -> Iterator[None]:
    values = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(values)


with _hidden(MULTIPROCESS_VARIABLES):
    from prometheus_client import CollectorRegistry, Counter, Gauge, GCCollector, Histogram, ProcessCollector
    from prometheus_client.metrics_core import Metric as ClientMetric

__all__ = ["ClientMetric", "CollectorRegistry", "Counter", "GCCollector", "Gauge", "Histogram", "ProcessCollector"]
