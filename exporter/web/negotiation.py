"""Pure: which form of an answer a client asks for. No header is an error: the plainest form is always right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from exporter.metrics.exposition import Exposition

OPENMETRICS_VERSIONS = ("1.0.0", "0.0.1")
TEXT_VERSIONS = ("0.0.4", "1.0.0")
ESCAPINGS = frozenset({"allow-utf-8", "underscores", "dots", "values"})


@dataclass(frozen=True, slots=True)
class Item:
    """One element of an Accept or Accept-Encoding header, with its quality from 0 to 1."""

    name: str
    parameters: Mapping[str, str]
    quality: float


@dataclass(frozen=True, slots=True)
class MetricsForm:
    """A text format and its content type. Our names are ASCII: the body is the same under every escaping."""

    exposition: Exposition
    content_type: str


def parse_accept(header: str) -> list[Item]:
    """The elements that a client accepts, best first; those with quality 0 and malformed ones are left out."""
    items = [_parse_item(element) for element in header.split(",")]
    accepted = [item for item in items if item.name and item.quality > 0]
    return sorted(accepted, key=lambda item: -item.quality)


def choose_metrics_form(accept: str) -> MetricsForm:
    """The best form that the client names in a version that we know; else one that it names; else text 0.0.4."""
    items = parse_accept(accept)
    known = (_form(item, exact=True) for item in items)
    similar = (_form(item, exact=False) for item in items)
    found = next((form for form in [*known, *similar] if form is not None), None)
    return found or _metrics_form(Exposition.TEXT, TEXT_VERSIONS[0], None)


def accepts_html(accept: str) -> bool:
    """Whether the client names HTML: a browser does, curl and Grafana don't."""
    return any(item.name in {"text/html", "application/xhtml+xml"} for item in parse_accept(accept))


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether the client names gzip and does not like an unchanged body better."""
    qualities = {item.name: item.quality for item in parse_accept(accept_encoding)}
    return qualities.get("gzip", 0.0) > 0 and qualities["gzip"] >= qualities.get("identity", 0.0)


def _parse_item(element: str) -> Item:
    name, *pairs = (part.strip() for part in element.split(";"))
    parameters = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        parameters[key.strip().lower()] = value.strip().strip('"')
    return Item(name.lower(), parameters, _parse_quality(parameters.pop("q", "1")))


def _parse_quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0 <= quality <= 1 else 0.0


def _form(item: Item, *, exact: bool) -> MetricsForm | None:
    if item.name == "application/openmetrics-text":
        exposition, versions = Exposition.OPENMETRICS, OPENMETRICS_VERSIONS
    elif item.name in {"text/plain", "text/*", "*/*"}:
        exposition, versions = Exposition.TEXT, TEXT_VERSIONS
    else:
        return None
    version = item.parameters.get("version", versions[0])
    if version not in versions:
        if exact:
            return None
        version = versions[0]
    return _metrics_form(exposition, version, item.parameters.get("escaping"))


def _metrics_form(exposition: Exposition, version: str, escaping: str | None) -> MetricsForm:
    media = "application/openmetrics-text" if exposition is Exposition.OPENMETRICS else "text/plain"
    echo = f"; escaping={escaping}" if escaping in ESCAPINGS else ""
    return MetricsForm(exposition, f"{media}; version={version}; charset=utf-8{echo}")
