"""Pure: which tags a request means, in every form in which Grafana writes a choice of several.

A client's pattern is never compiled: it is taken apart into literal texts and `.*`, and matched in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from exporter.errors import BadRequest
from exporter.web.grafana.fields import read_list, read_object, read_text, refusal

ALL: Final = "$__all"
FILTERED_KEY: Final = "tag"
UNEXPANDED: Final = re.compile(r"\$[A-Za-z_]\w*|\$\{\w[^{}]*\}|\[\[\w[^\[\]]*\]\]")
ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
# What stands between separators that no backslash takes away.
LISTED: Final = re.compile(r"(?:\\.?|[^\\,|])+", re.DOTALL)
ALTERNATIVE: Final = re.compile(r"(?:\\.?|[^\\|])+", re.DOTALL)
WILDCARD: Final = ".*"
PATTERN_PART: Final = re.compile(r"\.\*|(?:\\.|(?!\.\*)[^\\])+", re.DOTALL)
LITERAL_PART: Final = re.compile(r"\\[^0-9A-Za-z]|\.\*", re.DOTALL)
OTHER_SYNTAX: Final = re.compile(r"[\\*+?\[\](){}^$]")
MAX_FILTERS: Final = 50
MAX_WILDCARD_PATTERNS: Final = 32
MAX_TAGS: Final = 10_000
OPERATORS: Final = frozenset({"=", "!=", "=~", "!~", "=|", "!=|"})
# `.*`, as pieces.
ANYTHING: Final = ("", "")

Tags = tuple[str, ...]
Pieces = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TagFilter:
    """One ad hoc filter: the tags that it names, or with `negated` all others. `pieces` are joined by `.*`."""

    negated: bool
    literals: frozenset[str]
    patterns: tuple[Pieces, ...] = ()

    def admits(self, tag: str) -> bool:
        """Whether `tag` passes."""
        named = tag in self.literals or any(_matches(pieces, tag) for pieces in self.patterns)
        return named is not self.negated


def admitted(tags: Iterable[str], filters: Iterable[TagFilter]) -> Tags:
    """Those of `tags` that pass every filter."""
    tests = tuple(filters)
    return tuple(tag for tag in tags if all(test.admits(tag) for test in tests))


def read_tags(value: object, field: str) -> Tags | None:
    """The tags of a list, whose elements are literal, or of a text; None means all. Raises `BadRequest`."""
    value = _listed_as_json(value)
    if isinstance(value, list | tuple):
        texts = [read_text(element, f"{field}[{index}]") for index, element in enumerate(value)]
        all_of_them = _means_all(texts)
    else:
        text = read_text(value, field)
        texts = _split_text(text)
        # Asked of the text as it came: a tag that looks like a variable arrives with its dollar escaped.
        all_of_them = _means_all([text.strip()]) or (ALL in texts and f"\\{ALL}" not in text)
    tags = tuple(dict.fromkeys(text for text in texts if text))
    if len(tags) > MAX_TAGS:
        raise BadRequest(f"{field}: expected at most {MAX_TAGS} tags, got {len(tags)}", field=field)
    return None if all_of_them or not tags else tags


def read_filters(value: object, field: str) -> tuple[TagFilter, ...]:
    """The ad hoc filters on `tag`, all of which must pass; those on other keys are ignored. Raises `BadRequest`."""
    elements = read_list(value, field)
    if len(elements) > MAX_FILTERS:
        raise BadRequest(f"{field}: expected at most {MAX_FILTERS} filters, got {len(elements)}", field=field)
    return tuple(_read_filters(elements, field))


def _means_all(texts: list[str]) -> bool:
    return ALL in texts or (len(texts) == 1 and UNEXPANDED.fullmatch(texts[0]) is not None)


def _listed_as_json(value: object) -> object:
    """The list whose JSON text `value` is: a variable as JSON within a text, and nothing selected as `[]`."""
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        try:
            return msgspec.json.decode(value, type=list[str])
        except (msgspec.MsgspecError, UnicodeError):
            return value
    return value


def _split_text(text: str) -> list[str]:
    """`a`, `a,b`, `a|b`, `{a,b}` or `(a|b\\.c)`."""
    text = text.strip()
    if UNEXPANDED.fullmatch(text):
        return [text]
    if text.startswith("{") and text.endswith("}"):
        return text[1:-1].split(",")
    if _is_group(text):
        return [_unescape(piece) for piece in ALTERNATIVE.findall(text[1:-1])]
    return [_unescape(piece.strip()) for piece in LISTED.findall(text)]


def _read_filters(elements: Iterable[object], field: str) -> Iterator[TagFilter]:
    wildcards = 0
    for index, element in enumerate(elements):
        place = f"{field}[{index}]"
        described = read_object(element, place)
        if described.get("key") != FILTERED_KEY:
            continue
        operator = read_text(described.get("operator"), f"{place}.operator")
        if operator not in OPERATORS:
            raise refusal(f"{place}.operator", "=, !=, =~, !~, =| or !=|", operator)
        tag_filter = _read_filter(operator, described.get("value"), described.get("values"), f"{place}.value")
        wildcards += len(tag_filter.patterns)
        if wildcards > MAX_WILDCARD_PATTERNS:
            raise BadRequest(f"{field}: expected at most {MAX_WILDCARD_PATTERNS} patterns with .*", field=field)
        yield tag_filter


def _read_filter(operator: str, value: object, values: object, field: str) -> TagFilter:
    negated = operator.startswith("!")
    if operator.endswith("~"):
        return _parse_pattern(read_text(value, field), negated, field)
    if operator.endswith("|"):
        chosen = read_tags(values or value, f"{field}s" if values else field)
        return TagFilter(negated, frozenset(chosen or ()), (ANYTHING,) if chosen is None else ())
    return TagFilter(negated, frozenset({read_text(value, field)}))


def _parse_pattern(text: str, negated: bool, field: str) -> TagFilter:
    inner = _without_anchors(text)
    alternatives = ALTERNATIVE.findall(inner[1:-1] if _is_group(inner) else inner)
    if len(alternatives) > MAX_TAGS:
        raise BadRequest(f"{field}: expected at most {MAX_TAGS} alternatives, got {len(alternatives)}", field=field)
    literals: set[str] = set()
    patterns: list[Pieces] = []
    for alternative in map(_without_anchors, alternatives):
        if OTHER_SYNTAX.search(LITERAL_PART.sub("", alternative)):
            understood = "texts and .*, alternatives separated by |, other special characters behind a backslash"
            raise refusal(field, understood, text)
        pieces = _pieces(alternative)
        if len(pieces) == 1:
            literals.add(pieces[0])
        else:
            patterns.append(pieces)
    return TagFilter(negated, frozenset(literals), tuple(patterns))


def _pieces(alternative: str) -> Pieces:
    pieces = [""]
    for part in PATTERN_PART.findall(alternative):
        if part == WILDCARD:
            pieces.append("")
        else:
            pieces[-1] += _unescape(part)
    return tuple(pieces)


def _matches(pieces: Pieces, tag: str) -> bool:
    """Whether all of `tag` is the first piece, anything, the next piece, ..., the last piece."""
    first, *middle, last = pieces
    if len(first) + len(last) > len(tag) or not tag.startswith(first) or not tag.endswith(last):
        return False
    position, end = len(first), len(tag) - len(last)
    for piece in middle:
        found = tag.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def _without_anchors(pattern: str) -> str:
    pattern = pattern.removeprefix("^")
    return pattern[:-1] if pattern.endswith("$") and not _ends_escaped(pattern) else pattern


def _is_group(text: str) -> bool:
    return len(text) > 1 and text[0] == "(" and text[-1] == ")" and not _ends_escaped(text)


def _ends_escaped(text: str) -> bool:
    """Whether a backslash takes away the meaning of the last character."""
    before = text[:-1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    return ESCAPE.sub(r"\1", text)
