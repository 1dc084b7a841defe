"""The leaves of the configuration tree: their flags and variables, what they expect in words, and texts to values.

Flags, environment and file all deliver texts and are read by the same grammar, so that YAML's own types (`off` as a
boolean, `012` as ten, `1:30` as ninety) never decide what a value means.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import inspect

from exporter.config import Config, Secret

VARIABLE_PREFIX = "WINDMILL_EXPORTER_"
SHOWN_CHARACTERS = 60

INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
NUMBER = re.compile(r"[+-]?[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,3})?")
BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Key:
    """One leaf. `path` is dotted (`metrics.max_tags`); `expected` finishes a sentence that begins with "expected".

    `live` says that a reload applies it; otherwise it needs a restart.
    """

    path: str
    annotation: Any
    form: inspect.Type
    nullable: bool
    expected: str
    description: str
    default: object
    live: bool

    @property
    def flag(self) -> str:
        """The command line's name, in the Prometheus style."""
        return "--" + self.path.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment's name."""
        return VARIABLE_PREFIX + self.path.replace(".", "_").upper()

    @property
    def secret(self) -> bool:
        """Whether its value must never be shown, nor be given by a flag."""
        return isinstance(self.form, inspect.CustomType)

    def read(self, text: str | None) -> object:
        """The value of `text` (None: null). Raises `ValueError` with the sentence for the operator."""
        try:
            value = self._typed(text)
            return msgspec.convert(value, self.annotation)
        except (ValueError, msgspec.ValidationError):
            shown = "another text" if self.secret and text is not None else show(text)
            raise ValueError(f"expected {self.expected}, got {shown}") from None

    def _typed(self, text: str | None) -> object:
        if text is None or (self.nullable and text == "null"):
            return None
        match self.form:
            case inspect.BoolType():
                return BOOLEANS.get(text.lower(), text)
            case inspect.IntType():
                return int(text) if INTEGER.fullmatch(text) else text
            case inspect.FloatType():
                return float(text) if NUMBER.fullmatch(text) else text
        if self.secret:
            text = text.strip()  # secrets that were stored with `echo` end in a newline
        if not text.isprintable():
            raise ValueError("a control character")
        return Secret(text) if self.secret else text


def show(text: str | None) -> str:
    """`text` in quotes, on one line and shortened, for a message."""
    if text is None:
        return "null"
    return json.dumps(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "...")


@lru_cache(maxsize=1)
def config_keys() -> Mapping[str, Key]:
    """Every leaf by its path, in the order of the tree."""
    return MappingProxyType({key.path: key for key in _leaves(Config, "")})


@lru_cache(maxsize=1)
def config_sections() -> frozenset[str]:
    """The path of every section (`fairness`, `fairness.settings`)."""
    parents = (key.path.split(".")[:-1] for key in config_keys().values())
    return frozenset(".".join(names[:length]) for names in parents for length in range(1, len(names) + 1))


def tree_values(config: Config) -> Mapping[str, object]:
    """The value of every leaf by its path: the inverse of `build_tree`."""
    values: dict[str, object] = {}
    for path in config_keys():
        node: object = config
        for name in path.split("."):
            node = getattr(node, name)
        values[path] = node
    return values


def build_tree(values: Mapping[str, object]) -> Config:
    """The tree with `values` (by path, already read) in place of defaults."""
    return typing.cast("Config", _build(Config, "", values))


def _build(struct: type[msgspec.Struct], prefix: str, values: Mapping[str, object]) -> msgspec.Struct:
    arguments: dict[str, object] = {}
    for name, annotation in typing.get_type_hints(struct).items():
        path = prefix + name
        if _is_section(annotation):
            arguments[name] = _build(annotation, path + ".", values)
        elif path in values:
            arguments[name] = values[path]
    return struct(**arguments)


def _is_section(annotation: object) -> typing.TypeGuard[type[msgspec.Struct]]:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


def _leaves(struct: type[msgspec.Struct], prefix: str) -> Iterator[Key]:
    hints = typing.get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        annotation = hints[field.name]
        if _is_section(annotation):
            yield from _leaves(annotation, f"{prefix}{field.name}.")
        else:
            yield _key(prefix + field.name, annotation, field.default)


def _key(path: str, annotation: object, default: object) -> Key:
    form = inspect.type_info(annotation)
    nullable = isinstance(form, inspect.UnionType)
    if isinstance(form, inspect.UnionType):
        [form] = [part for part in form.types if not isinstance(part, inspect.NoneType)]
    description = ""
    extra: Mapping[str, Any] = {}
    if isinstance(form, inspect.Metadata):
        description = (form.extra_json_schema or {}).get("description", "")
        extra = form.extra or {}
        form = form.type
    expected = extra.get("expected", "") or _expectation(form)
    if nullable:
        expected += ", or null"
    return Key(path, annotation, form, nullable, expected, description, default, live=extra.get("live", False))


def _expectation(form: inspect.Type) -> str:
    match form:
        case inspect.BoolType():
            words = "true or false"
        case inspect.IntType(ge=lowest, le=highest):
            words = f"an integer from {lowest} to {highest}"
        case inspect.FloatType(ge=float() | int() as lowest, le=float() | int() as highest):
            words = f"a number from {lowest:g} to {highest:g}"
        case inspect.StrType(min_length=lowest, max_length=highest):
            length = f" of {lowest or 0} to {highest} characters" if highest else ""
            words = f"a printable text{length}"
        case inspect.EnumType(cls=members):
            words = "one of " + ", ".join(member.value for member in members)
        case inspect.LiteralType(values=literals):
            words = "one of " + ", ".join(map(str, literals))
        case inspect.CustomType():
            words = "a connection URL"
        case _:
            raise TypeError(f"no wording for {form}")
    return words
