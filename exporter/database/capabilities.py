"""What a collector needs of the database, declared next to the collector's statements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one collector needs of one relation (table, view or sequence).

    `relation` lives in Windmill's schema, or is given as `schema.relation`. `select`, `insert` and `update` name the
    columns that the statements name; a `FOR UPDATE` needs one column in `update`. `usage` is for a sequence.
    `operations` narrows what row security must let through to the rows whose column `operation` is one of these
    (the audit tables); without it every row must be visible.
    """

    relation: str
    select: tuple[str, ...] = ()
    insert: tuple[str, ...] = ()
    update: tuple[str, ...] = ()
    delete: bool = False
    usage: bool = False
    operations: tuple[str, ...] = ()
