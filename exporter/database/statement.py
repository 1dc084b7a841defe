"""SQL texts with a placeholder for the schema, read from `.sql` files next to the code that runs them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files


class Statement:
    """One SQL text. `{schema}` and other placeholders in it are filled with quoted identifiers, never with values."""

    __slots__ = ("_template", "name")

    def __init__(self, name: str, template: str) -> None:
        self.name = name
        self._template = template

    @classmethod
    def load(cls, package: str, file_name: str) -> Statement:
        """Read `file_name` from `package` (a dotted name)."""
        return cls(file_name.removesuffix(".sql"), (files(package) / file_name).read_text(encoding="utf-8"))

    def followed_by(self, name: str, template: str) -> Statement:
        """This text with another one behind it, such as one more branch of a UNION."""
        return Statement(name, self._template.rstrip() + "\n" + template)

    def with_text(self, placeholder: str, text: str) -> Statement:
        """Put `text`, which is SQL of this code, in the place of a placeholder once and for all."""
        return Statement(self.name, self._template.replace("{" + placeholder + "}", text))

    def with_statement(self, placeholder: str, part: Statement) -> Statement:
        """Put another statement in the place of a placeholder, such as a subquery that several share."""
        return self.with_text(placeholder, part._template)

    def with_relation(self, placeholder: str, relation: str) -> Statement:
        """Name a relation once and for all: `relation` is `name`, in the database's schema, or `schema.name`."""
        schema, name = split_relation(relation, "")
        quoted = f"{quote_identifier(schema) if schema else '{schema}'}.{quote_identifier(name)}"
        return Statement(self.name, self._template.replace("{" + placeholder + "}", quoted))

    def render(self, identifiers: Mapping[str, str]) -> str:
        """The text with every placeholder of `identifiers` replaced by its quoted identifier."""
        text = self._template
        for placeholder, identifier in identifiers.items():
            text = text.replace("{" + placeholder + "}", quote_identifier(identifier))
        return text


@lru_cache(maxsize=64)
def quote_identifier(name: str) -> str:
    """`name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """`text`, which must come from this code and not from outside, as an SQL string constant."""
    return "'" + text.replace("'", "''") + "'"


def split_relation(relation: str, schema: str) -> tuple[str, str]:
    """Schema and name of `relation`, given as `name` (then it lives in `schema`) or as `schema.name`."""
    before, dot, name = relation.partition(".")
    return (before, name) if dot else (schema, relation)


def quote_relation(relation: str, schema: str) -> str:
    """`relation`, given as `name` or `schema.name`, as a quoted SQL name with its schema."""
    return ".".join(map(quote_identifier, split_relation(relation, schema)))
