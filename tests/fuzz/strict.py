"""Reads an answer as the strictest client would, and compares it with what the service says of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any, NoReturn

import jsonschema_rs
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

JSON = "application/json"
VOID = frozenset({"meta", "link", "input", "br", "hr", "wbr"})
FOREIGN = frozenset({"img", "iframe", "object", "embed", "form", "base"})


def _no_json(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


def read_json(body: bytes) -> Any:
    """A document of standard JSON, which holds neither NaN nor half a character."""
    document = json.loads(body.decode(), parse_constant=_no_json)
    json.dumps(document, ensure_ascii=False).encode()
    return document


class WellFormed(HTMLParser):
    """Fails where an element is not closed in its turn, or where there is more than the parser understood."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], "never closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice: {names}"
        assert not [name for name in names if name.startswith("on")], "a script within the page"
        assert tag not in FOREIGN, "an element that the page has no use for"
        assert tag != "script" or "src" in names, "a script within the page"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without its beginning"
        assert self.open.pop() == tag


class Description:
    """The OpenAPI document of a service, and what it allows an operation to answer."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self._validators: dict[str, Any] = {}

    def check(self, path: str, method: str, status: int, content_type: str, body: bytes) -> Any:
        """Fail unless the answer is one that is described, to the letter. Gives its JSON, if it is that."""
        described = self.document["paths"][path][method.lower()]["responses"]
        assert str(status) in described, (status, body[:500])
        assert b"Traceback" not in body
        media_type = content_type.partition(";")[0]
        content = described[str(status)]["content"]
        assert media_type in content, (media_type, list(content))
        if media_type != JSON:
            _read_text(media_type, body.decode())
            return None
        answer = read_json(body)
        self._validator(content[JSON]["schema"]).validate(answer)
        if status >= 400:
            assert answer["message"] == answer["error"]["message"] != ""
        return answer

    def _validator(self, schema: Mapping[str, Any]) -> Any:
        key = json.dumps(schema)
        if key not in self._validators:
            whole = {**schema, "components": self.document["components"]}
            self._validators[key] = jsonschema_rs.Draft202012Validator(whole)
        return self._validators[key]


def _read_text(media_type: str, text: str) -> None:
    match media_type:
        case "text/plain":
            list(text_families(text))
        case "application/openmetrics-text":
            list(openmetrics_families(text))  # type: ignore[no-untyped-call]  # the library lacks the annotation
        case "text/html":
            WellFormed(text)
