"""The metrics page as prepared bytes.

What comes from the snapshot is collected and rendered at most once for each state of it, at the first scrape that asks:
scrapes are rarer than snapshots, so nothing is rendered that nobody reads. This process' own metrics change with every
scrape; they are rendered again when something was recorded, and otherwise once a second at the most.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from time import monotonic

from exporter.metrics import families
from exporter.metrics.collect import Chosen, Collected, Scope, collect
from exporter.metrics.exposition import OPENMETRICS_END, Exposition, render
from exporter.metrics.freshness import Freshness, freshness
from exporter.metrics.labelled import labelled
from exporter.metrics.own import OwnMetrics
from exporter.metrics.values import Family, Metric
from exporter.snapshot import Board, Snapshot

OWN_SECONDS = 1.0
# Compression runs on the event loop: the lowest level takes a third of the default's time for a sixth more bytes.
COMPRESSION_LEVEL = 1


class MetricsPage:
    """Answers scrapes from the board's current snapshot and this process' own metrics."""

    def __init__(self, board: Board, own: OwnMetrics, scope: Scope, clock: Callable[[], float] = monotonic) -> None:
        self._board = board
        self._own = own
        self._scope = scope
        self._clock = clock
        self._shown: tuple[Snapshot, Freshness] | None = None
        self._own_changes = 0
        self._own_until = 0.0
        self._collected = Collected((), Chosen())
        self._snapshot_texts: dict[Exposition, bytes] = {}
        self._bodies: dict[tuple[Exposition, bool], bytes] = {}

    def set_scope(self, scope: Scope) -> None:
        """Export by other limits from now on."""
        self._scope = scope
        self._shown = None

    def body(self, exposition: Exposition, *, gzipped: bool) -> bytes:
        """The whole page."""
        self._update()
        body = self._bodies.get((exposition, gzipped))
        if body is None and gzipped:
            body = self._bodies[exposition, True] = _encode(self.body(exposition, gzipped=False), gzipped)
        elif body is None:
            own = render(self._own_metrics(), exposition)
            body = self._bodies[exposition, False] = self._snapshot_text(exposition) + own + _end(exposition)
        return body

    def selected(self, exposition: Exposition, names: AbstractSet[str], *, gzipped: bool) -> bytes:
        """The families of which a sample, or the family itself, has one of `names`."""
        self._update()
        metrics = [each for each in [*self._collected.metrics, *self._own_metrics()] if _is_named(each.family, names)]
        return _encode(render(metrics, exposition) + _end(exposition), gzipped)

    def _update(self) -> None:
        """Forget what the clock, a new snapshot or a record has made untrue."""
        now = self._clock()
        snapshot = self._board.current
        fresh = freshness(snapshot, self._scope.fairness_mode, now)
        if self._shown is None or self._shown[0] is not snapshot or self._shown[1] != fresh:
            self._shown = (snapshot, fresh)
            self._collected = collect(snapshot, fresh, self._scope, self._collected.chosen)
            self._snapshot_texts.clear()
            self._bodies.clear()
        if self._own.changes != self._own_changes or now >= self._own_until:
            self._own_changes = self._own.changes
            self._own_until = now + OWN_SECONDS
            self._bodies.clear()

    def _snapshot_text(self, exposition: Exposition) -> bytes:
        text = self._snapshot_texts.get(exposition)
        if text is None:
            text = self._snapshot_texts[exposition] = render(self._collected.metrics, exposition)
        return text

    def _own_metrics(self) -> list[Metric]:
        dropped = dict.fromkeys(families.LIMITED if self._scope.cluster else (), 0)
        dropped |= {each.family.name: each.dropped for each in self._collected.metrics if each.family.name in dropped}
        return [*self._own.metrics(), labelled(families.SERIES_DROPPED, dropped.items())]


def _encode(text: bytes, gzipped: bool) -> bytes:
    return gzip.compress(text, COMPRESSION_LEVEL, mtime=0) if gzipped else text


def _is_named(family: Family, names: AbstractSet[str]) -> bool:
    return family.name in names or family.stem in names or not names.isdisjoint(family.sample_names)


def _end(exposition: Exposition) -> bytes:
    return OPENMETRICS_END if exposition is Exposition.OPENMETRICS else b""
