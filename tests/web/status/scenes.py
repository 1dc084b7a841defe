"""States of the exporter, the page made of them, and the page read back by an HTML parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from exporter.fairness.values import FairnessMode, FairnessSettings, FairnessSnapshot, Payload
from exporter.metrics.collect import Scope
from exporter.metrics.freshness import freshness
from exporter.snapshot import CollectorStatus, Snapshot
from exporter.web.status.compose import compose
from exporter.web.status.html import document
from exporter.web.status.past import Past
from exporter.web.status.sentence import headline, remarks
from exporter.web.status.values import Clocks, Page
from exporter.web.status.wording import Name, Sentence
from tests.metrics.scenes import MONOTONIC, NOW, fairness, queue, snapshot, tag

CLOCKS = Clocks(MONOTONIC, NOW)
ENABLED = FairnessSettings(enabled=True)
HOSTILE = "<script>alert('\"&\u202e\n\x1b\ud800')</script>"
VOID = {"meta", "link", "rect", "line", "path"}


def plain(sentence: Sentence) -> str:
    """A sentence as a person reads it, with plain spaces."""
    return "".join(part.text if isinstance(part, Name) else part for part in sentence).replace("\u00a0", " ")


def first_line(state: Snapshot, mode: FairnessMode = FairnessMode.ENFORCE, clocks: Clocks = CLOCKS) -> str:
    """The headline of a state."""
    return plain(headline(state, freshness(state, mode, clocks.monotonic), clocks))


def further_lines(state: Snapshot, mode: FairnessMode = FairnessMode.ENFORCE) -> list[str]:
    """The remarks on a state."""
    return [plain(remark) for remark in remarks(state, freshness(state, mode, MONOTONIC))]


def in_shadow(**changes: Any) -> FairnessSnapshot:
    """A snapshot of a replica that only watches."""
    changes = {"settings": ENABLED, "in_force": Payload(), "ours": False, "payload_age_seconds": None, **changes}
    return fairness(mode=FairnessMode.SHADOW, **changes)


def failing(problem: str, reason: str, *names: str, up: bool = True, last: float | None = NOW - 400) -> Snapshot:
    """A state in which these collectors fail, and nothing was kept."""
    statuses = tuple(CollectorStatus(name, False, last, problem, reason) for name in names)
    return Snapshot(statuses, database_up=up)


def hostile_snapshot(name: str = HOSTILE) -> Snapshot:
    """A state in which everything that can have a name has this one."""
    usage = replace(fairness().reading.usage[0], workspace=name)  # type: ignore[union-attr]  # the scene has a reading
    state = snapshot(
        fairness([usage], settings=ENABLED, in_force=Payload((name,), 518)),
        queue([tag(name, 5, workers=0)], drained=[name + "2"]),
    )
    return replace(state, collectors=(*state.collectors, CollectorStatus(name, problem=name, reason=name)))


def made(
    state: Snapshot,
    *,
    mode: FairnessMode = FairnessMode.ENFORCE,
    conditions: Mapping[str, str] | None = None,
    past: Past | None = None,
    clocks: Clocks = CLOCKS,
    max_workspaces: int = 100,
) -> Page:
    """The values of the page."""
    return compose(state, Scope(mode, max_workspaces), conditions or {}, past or Past(), clocks)


class Document(HTMLParser):
    """A page as a parser sees it: elements with attributes, and the text of each section. Fails when ill-formed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        assert len(attributes) == len(attrs)
        self.elements.append((tag, attributes))
        inherited = self._open[-1][1] if self._open else ""
        if tag not in VOID:
            own = (attributes.get("class") or "") if tag == "section" else tag if tag in {"h1", "footer"} else inherited
            self._open.append((tag, own))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            section = self._open[-1][1]
            self.texts[section] = self.texts.get(section, "") + data.replace("\u00a0", " ")

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        """The attributes of each element of that name that has these."""
        found = [attributes for name, attributes in self.elements if name == tag]
        return [each for each in found if all(each.get(key.strip("_")) == value for key, value in wanted.items())]


def shown(page: Page, prefix: str = "", paths: Sequence[str] = ("/metrics", "/-/healthy", "/-/ready")) -> Document:
    """The page as HTML, read back."""
    return Document(document(page, prefix, paths))
