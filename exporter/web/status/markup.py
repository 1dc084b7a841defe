"""Pure: HTML from elements. Text and attribute values are escaped in this one place; only `Html` passes as it is."""

from __future__ import annotations

from html import escape

from exporter.web.status.wording import Name, Sentence, shown_name, visible

VOID = frozenset({"meta", "link", "rect", "line", "path"})


class Html(str):
    """Text that is HTML already. Made by `element` and `joined` alone."""

    __slots__ = ()


Child = str | Html


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Html:
    """An element. In attribute names `_` stands for `-`, one at the end for nothing; None and False leave out."""
    written = "".join(
        f" {_attribute_name(name)}" if value is True else f' {_attribute_name(name)}="{_escaped(str(value))}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in VOID:
        return Html(f"<{tag}{written}/>" if tag in {"rect", "line", "path"} else f"<{tag}{written}>")
    return Html(f"<{tag}{written}>{joined(*children)}</{tag}>")


def joined(*children: Child) -> Html:
    """Children without an element around them."""
    return Html("".join(child if isinstance(child, Html) else _escaped(child) for child in children))


def name(text: str) -> Html:
    """A name of somebody else's choice: whatever its script, it leaves the direction of the words around it alone."""
    return element("bdi", shown_name(text), class_="name", title=text if len(text) > 40 else None)


def sentence(parts: Sentence) -> Html:
    """A sentence with its names set apart."""
    return joined(*(name(part.text) if isinstance(part, Name) else part for part in parts))


def _attribute_name(name: str) -> str:
    return name.removesuffix("_").replace("_", "-")


def _escaped(text: str) -> str:
    return escape(visible(text))
